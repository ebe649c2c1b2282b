"""Checks and times plans on a GPU.

`gather` writes the bundle. `commands` lists the three commands and their sections. A section's module has `names`, the
list of its checks, and `results`, which runs one of them in a separate process. `process` monitors these processes, and
`report` writes their results.
"""
