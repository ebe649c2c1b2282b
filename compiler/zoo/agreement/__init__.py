"""Measures of a model's task: whether a plan gives the answers that onnxruntime gives, such as the same classes."""
