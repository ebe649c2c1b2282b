"""How far a plan is from onnxruntime and from double precision."""
