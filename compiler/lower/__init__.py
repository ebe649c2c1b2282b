"""ONNX operators → plan steps: one file an operator family, namesake of `runtime/plan/src/ops/<family>.rs`."""

from compiler.lower import (  # noqa: F401  (a family registers its lowerings when it is imported)
    binary,
    cast,
    col2im,
    conditional,
    control,
    conv,
    cumulative,
    detection,
    einsum,
    elementwise,
    gather,
    generate,
    identity,
    integer,
    join,
    layer_norm,
    layout,
    matmul,
    norm,
    optional,
    pad,
    pool,
    quantize,
    reduce,
    repeat,
    resize,
    scatter,
    select,
    sequence,
    shape,
    slice,
    softmax,
    sort,
    strings,
    unary,
    views,
)
from compiler.lower.evaluate import evaluate
from compiler.lower.lower import can_lower, lower
from compiler.lower.program import is_elementwise, takes_epilogue

__all__ = ["can_lower", "evaluate", "is_elementwise", "lower", "takes_epilogue"]
