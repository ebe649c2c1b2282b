"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Shape(Op):
    """The dimensions `start .. end` of `X`, as `int64 [n]`; the range is clamped to the rank."""

    start: int
    """The first dimension; a negative one counts from the end."""

    end: int | None = None
    """One past the last dimension; a negative one counts from the end; absent means the rank."""


class Size(Op):
    """The number of `X`'s elements, as `int64 []`. Source: [ONNX
    Size](https://onnx.ai/onnx/operators/onnx__Size.html).
    """
