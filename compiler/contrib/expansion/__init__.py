"""Code for the families of expansions.

`node` reads the node, `body` creates the nodes of its expansion, and `expand` calls the family of an operator, which
`families` lists. The other files have computations: `heads`, `mask` and `kv_cache` for attention, and `packed` for
codes that share bytes.
"""
