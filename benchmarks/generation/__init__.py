"""The speed of text generation with 4-bit weights, beside onnxruntime and llama.cpp."""
