"""Export of PyTorch modules, and conversion of model files to checked `onnx_ir.Model` graphs."""
