"""Tests of the commands: each file tests one verb. A package, because other folders have files of the same names."""
