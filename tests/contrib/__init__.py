"""Tests of expansions: each file tests one family. A package, because other folders have files of the same names."""
