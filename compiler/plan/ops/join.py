"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Concat(Op):
    """Concatenates the inputs along `axis`. They are equal in all other dimensions."""

    axis: int
    """The axis; a negative one counts from the end."""


class Split(Op):
    """Splits `X` along `axis` into as many parts as there are outputs. Input 1, `split: int64 [outputs]`, holds
    their sizes. If it is absent, the parts have equal sizes, except for the last one, which may be smaller.
    """

    axis: int
    """The axis; a negative one counts from the end."""
