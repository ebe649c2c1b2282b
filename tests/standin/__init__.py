"""A stand-in for NVIDIA's driver, cuBLAS and cuRAND: the module for CUDA runs on it, on the processor."""
