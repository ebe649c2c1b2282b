"""What verbs print: tables of steps, times and placements, and the page of `candlec compile --report`."""
