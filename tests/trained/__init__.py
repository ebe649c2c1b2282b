"""Trained models, run and compared with onnxruntime."""
