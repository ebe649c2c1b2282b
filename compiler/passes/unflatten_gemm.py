"""Drops reshapes around Gemm and MatMul that flatten `[N, L, K]` and restore it, as in exported linear layers.

The pass writes the product as `MatMul(x, W) + bias`. Other passes can then fuse it with a following activation or sum.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, sole_user, static_shape
from compiler.ir.views.product import ProductView
from compiler.rewrite.last_axis import last_size
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import typed
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["unflatten_gemm"]

_FLAT = Op(("Reshape", "Flatten"), Var("x"), rest=True)


class UnflattenGemm(FindingRule[list[int]]):
    """`reshape(Gemm(reshape(x, [M, K]), W, bias), […, N])` → `MatMul(x, W) + bias`, where `x` is `[…, K]`.

    The same holds for MatMul, without a bias.
    """

    pattern = Op("Reshape", Op(("Gemm", "MatMul"), _FLAT, Var("w"), Var("bias", optional=True), name="gemm"), Var())
    allow_shared_intermediates = True

    def check(self, match: Match) -> list[int] | str:
        """The matrix has one reader; `x` and the result differ only in the last axis; the bias is a row.

        Returns the shape input of a Reshape of `x` to `[…, K]`.
        """
        gemm, result = match.node("gemm"), match.root.outputs[0]
        if sole_user(gemm.outputs[0]) is not match.root:
            return f"{gemm.outputs[0].name!r} is needed elsewhere too"
        view = ProductView[ir.Value].of(gemm, complete=True)
        if view is None or view.is_scaled:
            return "the product or the bias is scaled"
        if view.trans_a or (view.trans_b and constant_of(match["w"]) is None):
            return "a matrix that is not constant is transposed"
        columns, target = _sizes(gemm)[1], _target(match)
        if columns is None or last_size(result) != columns or target is None:
            return "the shapes differ in more than the last axis"
        return _bias_problem(match, columns) or target

    def rewrite(self, match: Match, found: list[int], new: Rewriter) -> ir.Value:
        """The product plus the bias."""
        w, result = match["w"], match.root.outputs[0]
        array = constant_of(w) if _is_transposed(match.node("gemm")) else None
        if array is not None:
            w = new.constant(np.ascontiguousarray(array.T), f"{w.name}.transposed")
        product = typed(new.op("MatMul", _reshaped_input(match, found, new), w), result.type, result.shape)
        return new.op("Add", product, match["bias"]) if match.has("bias") else product


def _is_transposed(gemm: ir.Node) -> bool:
    """Whether the weights are `[N, K]`."""
    view = ProductView[ir.Value].of(gemm)
    return view is not None and view.trans_b


def _sizes(gemm: ir.Node) -> tuple[int | None, int | None]:
    """K and N; `None` if unknown."""
    shape = None if gemm.inputs[1] is None else static_shape(gemm.inputs[1])
    if shape is None or len(shape) != 2:
        return None, None
    return (shape[1], shape[0]) if _is_transposed(gemm) else (shape[0], shape[1])


def _target(match: Match) -> list[int] | None:
    """The shape input of a Reshape of `x` to the result's shape with K instead of N; `None` if there is none."""
    x, result, inner = match["x"].shape, match.root.outputs[0].shape, _sizes(match.node("gemm"))[0]
    if x is None or result is None or inner is None or len(result) < 3:
        return None
    return reshape_target(x.dims, [*result.dims[:-1], inner])


def _reshaped_input(match: Match, target: list[int], new: Rewriter) -> ir.Value:
    """`x` as `[…, K]`."""
    x, result = match["x"], match.root.outputs[0].shape
    shape = ir.Shape([*(() if result is None else result.dims[:-1]), target[-1]])
    if x.shape == shape:
        return x
    return typed(new.op("Reshape", x, new.constant(np.array(target, np.int64), "shape"), version=14), x.type, shape)


def _bias_problem(match: Match, columns: int | None) -> str | None:
    if not match.has("bias"):
        return None
    shape = static_shape(match["bias"])
    is_row = shape is not None and shape[:-1] in ((), (1,)) and shape[-1:] in ((), (1,), (columns,))
    return None if is_row else f"the bias of shape {match['bias'].shape} is not a row"


unflatten_gemm = rules_pass(
    "unflatten_gemm", [UnflattenGemm()], result="linear layers unflattened", requires=frozenset({"shapes"})
)
