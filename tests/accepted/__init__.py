"""Tests that the runtime runs every model that the compiler accepts: variants of small models of every operator."""
