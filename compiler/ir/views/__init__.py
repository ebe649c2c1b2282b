"""Views of ONNX nodes: one place for each operator family that reads attributes, inputs, defaults and opset forms."""
