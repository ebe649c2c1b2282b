"""PyTorch layers, each exported, compiled, run and compared with PyTorch itself."""
