"""Weights of a model that come from a file: safetensors, or GGUF with blocks of codes."""
