"""ONNX operators → plan steps: one file an operator family, namesake of `runtime/plan/src/ops/<family>.rs`."""

from compiler.lower import (  # noqa: F401  (a family registers its lowerings when it is imported)
    cast,
    control,
    gather,
    generate,
    identity,
    join,
    layout,
    optional,
    pad,
    quantize,
    repeat,
    scatter,
    select,
    sequence,
    shape,
    slice,
    views,
)
from compiler.lower.evaluate import evaluate
from compiler.lower.lower import can_lower, lower

__all__ = ["can_lower", "evaluate", "lower"]
