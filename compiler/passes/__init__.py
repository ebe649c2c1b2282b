"""The passes, one in each file. A pass rewrites a model in place. `compiler.pipeline` gives their order."""
