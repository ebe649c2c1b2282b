"""PyTorch layers: the tests export, compile and run each, and compare it with PyTorch itself."""
