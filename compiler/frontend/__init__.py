"""From a PyTorch module or a file to a checked `onnx_ir.Model`."""
