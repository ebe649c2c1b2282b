"""The printed tables of steps, times and placements, and the page of `candlec compile --report`."""
