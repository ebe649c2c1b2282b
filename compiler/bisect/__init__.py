"""The search for the optional pass that makes a plan wrong, larger or slower, gives it other steps, or makes it crash.

A search for a wrong result compares with onnxruntime or with an older plan. The good side of other searches is the plan
without optional passes, an older plan, or the facts that a zoo has recorded.
"""
