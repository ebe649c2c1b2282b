"""Views of ONNX nodes. A view reads the attributes, inputs and defaults of all versions of an operator family."""
