"""Code for the families of expansions.

`node` reads the node, `body` creates the nodes of its expansion, and `expand` calls the family of an operator, which
`families` lists. The other files hold computations: `heads`, `mask` and `kv_cache` those of attention, and `packed`
those of codes that share bytes.
"""
