"""Queries about a graph, symbols, dtypes, origins and the facts of the ONNX standard."""
