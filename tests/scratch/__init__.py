"""Every operator on tensors of some megabytes, with attributes and element types that kernels tell apart."""
