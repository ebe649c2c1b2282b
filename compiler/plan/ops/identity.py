"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Identity(Op):
    """`Y = X`, for a value of any kind. `Y` shares the storage of `X`. Source: [ONNX
    Identity](https://onnx.ai/onnx/operators/onnx__Identity.html).
    """
