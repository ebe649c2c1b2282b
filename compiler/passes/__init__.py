"""The passes, one a file: each rewrites a model in place. `compiler.pipeline` says in which order."""
