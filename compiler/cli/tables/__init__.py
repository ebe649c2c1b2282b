"""The printed tables of steps, times, placements and differences."""
