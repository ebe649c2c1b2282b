"""Comparison of a plan with onnxruntime and with double precision."""
