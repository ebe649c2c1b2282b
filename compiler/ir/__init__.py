"""The graph that every stage reads: its questions, types, symbols, origins and the facts of the ONNX standard."""
