"""Models as hubs serve them: graphs of mobius-onnx, with onnxruntime's operators, 16-bit floats, 4-bit weights."""
