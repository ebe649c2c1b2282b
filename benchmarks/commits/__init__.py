"""The comparison of the speed of two commits."""
