"""Absorbs transposes into matrix products and attention, which read transposed inputs with strides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, constant_of, rank
from compiler.ir.views.product import ProductView
from compiler.rewrite.pattern import AnyOf, Match, Op, Var
from compiler.rewrite.permutation import permutation_of, reordered_shape, typed
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["absorb_transposes"]

_SWAPPED = (1, 0)
_IDENTITY = (0, 1, 2, 3)
_HEADS_SECOND = (0, 2, 1, 3)
_POSITIONS_FIRST = (1, 2, 0, 3)
_SWAP_FIRST_TWO = (1, 0, 2)
_TRANSPOSE = Op("Transpose", Var())
_EITHER_SIDE = ((_TRANSPOSE, Var()), (Var(), _TRANSPOSE))


def _untransposed(value: ir.Value | None, perm: tuple[int, ...]) -> ir.Value | None:
    """The input of the Transpose by `perm` that produces the value; `None` if there is none."""
    node = None if value is None else value.producer()
    if node is None or node.op_identifier() != ("", "Transpose", "") or permutation_of(node) != perm:
        return None
    return node.inputs[0]


_Sources = tuple[ir.Value | None, ir.Value | None]
"""The inputs of the transposes of both operands; `None` for an operand without one."""


def _swapped_sources(match: Match) -> _Sources | str:
    """The sources of the root's operands with swapped axes, or the reason why there are none."""
    a, b = (_untransposed(value, _SWAPPED) for value in match.root.inputs[:2])
    return (a, b) if a or b else "no axes are swapped"


class AbsorbInMatMul(FindingRule[_Sources]):
    """`MatMul(Aᵀ, B)`, `MatMul(A, Bᵀ)` of two matrices → `Gemm(A, B)` with transA, transB."""

    pattern = AnyOf(Op("MatMul", _TRANSPOSE, Var()), Op("MatMul", Var(), _TRANSPOSE))
    allow_shared_intermediates = True

    def check(self, match: Match) -> _Sources | str:
        """Both operands are matrices, and the transpose of one swaps the axes."""
        if any(rank(value) != 2 for value in match.root.inputs):
            return "an operand is not a matrix"
        return _swapped_sources(match)

    def rewrite(self, match: Match, found: _Sources, new: Rewriter) -> ir.Value:
        """The product of the untransposed values."""
        (a, b), (source_a, source_b) = match.root.inputs, found
        trans_a, trans_b = int(source_a is not None), int(source_b is not None)
        return new.op("Gemm", source_a or a, source_b or b, version=13, transA=trans_a, transB=trans_b)


class AbsorbInStacks(FindingRule[_Sources]):
    """`MatMul(Aᵀ, B)`, `MatMul(A, Bᵀ)` of stacked matrices → the plan's `MatMul(A, B)` with trans_a, trans_b."""

    pattern = AnyOf(
        *(Op("MatMul", *sides, domain=domain) for domain in ("", PLAN_DOMAIN) for sides in _EITHER_SIDE),
    )
    allow_shared_intermediates = True

    def check(self, match: Match) -> _Sources | str:
        """The transpose of an operand swaps only its last two axes, and the operand is not constant."""
        if any((rank(value) or 0) < 2 for value in match.root.inputs):
            return "an operand is not a matrix"
        if "epilogue" in match.root.attributes:
            return "it has an epilogue"
        a, b = (_with_swapped_matrices(value) for value in match.root.inputs)
        return (a, b) if a or b else "the transpose moves other axes than the last two"

    def rewrite(self, match: Match, found: _Sources, new: Rewriter) -> ir.Value:
        """The product of the untransposed values."""
        sides = [before or value for before, value in zip(found, match.root.inputs, strict=True)]
        flags: dict[str, Any] = {
            name: int(flag != (before is not None))
            for name, flag, before in zip(("trans_a", "trans_b"), _flags(match.root), found, strict=True)
        }
        result: ir.Value = new.op("MatMul", *sides, domain=PLAN_DOMAIN, version=1, **flags)
        return result


def _flags(product: ir.Node) -> tuple[bool, bool]:
    """Whether each operand of a MatMul or Gemm is transposed."""
    view = ProductView[ir.Value].of(product)
    return (False, False) if view is None else (view.trans_a, view.trans_b)


def _with_swapped_matrices(value: ir.Value | None) -> ir.Value | None:
    """The input of the Transpose of the last two axes that produces the value; `None` without one or if constant."""
    order = tuple(range(rank(value) or 0))
    given = _untransposed(value, (*order[:-2], *order[:-3:-1]))
    return None if constant_of(given) is not None else given


class AbsorbInGemm(FindingRule[_Sources]):
    """`Gemm(Aᵀ, B, C)`, `Gemm(A, Bᵀ, C)` → `Gemm(A, B, C)` with transA or transB inverted."""

    pattern = AnyOf(Op("Gemm", _TRANSPOSE, rest=True), Op("Gemm", Var(), _TRANSPOSE, rest=True))
    allow_shared_intermediates = True

    def check(self, match: Match) -> _Sources | str:
        """The transpose of an operand swaps its axes."""
        return _swapped_sources(match)

    def rewrite(self, match: Match, found: _Sources, new: Rewriter) -> ir.Value:
        """The product of the untransposed values."""
        (a, b, *rest), (source_a, source_b) = match.root.inputs, found
        result = new.like(match.root, source_a or a, source_b or b, *rest)
        for name, flag, given in zip(("transA", "transB"), _flags(match.root), found, strict=True):
            if given is not None:
                new.nodes[-1].attributes[name] = ir.AttrInt64(name, int(not flag))
        return result


@dataclass(frozen=True)
class _Heads:
    """The input `x` of a transpose to `[N, heads, L, D]`.

    `x` is `[L, N, heads, D]` if `is_positions_first`, else `[N, L, heads, D]`. `heads` and `size` (D) are not 0.
    """

    x: ir.Value
    heads: int
    size: int
    is_positions_first: bool


class AbsorbInAttention(FindingRule[list[_Heads]]):
    """`Transpose(Attention(Transpose(q), Transpose(k), Transpose(v), mask))` → Attention of `[N, L, heads · D]`.

    The transposes swap heads and positions. Reshapes, which copy nothing, replace them: `[N, L, heads, D]` to
    `[N, L, heads · D]`, and back. If positions come before batches, the rows of all heads are transposed together.
    """

    pattern = Op(
        "Transpose",
        AnyOf(
            Op("Attention", rest=True, name="attention"),
            Op("Attention", rest=True, domain=PLAN_DOMAIN, name="attention"),
        ),
    )
    looks_above = 1  # the transposes of queries, keys and values

    def check(self, match: Match) -> list[_Heads] | str:
        """Queries, keys and values are transposed, and the sizes of heads and D are known."""
        node, perm = match.node("attention"), permutation_of(match.root)
        if perm is None or _perm_after_attention(perm)[2:] != (2, 3) or len(node.outputs) > 1 or any(node.inputs[4:]):
            return "the transpose moves other axes than heads"
        given = [_heads_of(value) for value in node.inputs[:3]]
        reason = next((each for each in given if isinstance(each, str)), None)
        return reason or [each for each in given if not isinstance(each, str)]

    def rewrite(self, match: Match, found: list[_Heads], new: Rewriter) -> ir.Value:
        """The Attention between reshapes."""
        node, output = match.node("attention"), match.root.outputs[0]
        heads, kv_heads, width = found[0].heads, found[1].heads, found[2].size
        result = new.like(node, *(_merge_heads(each, new) for each in found), *node.inputs[3:4])
        new.nodes[-1].attributes["q_num_heads"] = ir.AttrInt64("q_num_heads", heads)
        new.nodes[-1].attributes["kv_num_heads"] = ir.AttrInt64("kv_num_heads", kv_heads)
        own = reordered_shape(node.outputs[0].shape, _HEADS_SECOND)
        typed(result, output.type, None if own is None else ir.Shape([*own.dims[:2], heads * width]))
        shape = new.constant(np.array([0, 0, heads, width], np.int64), "shape")
        result = typed(new.op("Reshape", result, shape, version=14), output.type, own)
        perm = _perm_after_attention(permutation_of(match.root) or _HEADS_SECOND)
        return result if perm == _IDENTITY else new.op("Transpose", result, perm=list(perm))


def _perm_after_attention(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of `[N, L, heads, D]` that is equivalent to `perm` of `[N, heads, L, D]`."""
    return tuple(_HEADS_SECOND[axis] for axis in perm)


def _heads_of(value: ir.Value | None) -> _Heads | str:
    """The source of a transposed query, key or value; or the reason why it is unknown."""
    direct, swapped = _untransposed(value, _HEADS_SECOND), _untransposed(value, _POSITIONS_FIRST)
    x = swapped if direct is None else direct
    if x is None:
        return "queries, keys and values are not all transposed"
    heads, size = x.shape.dims[2:] if x.shape is not None and len(x.shape) == 4 else (None, None)
    if not isinstance(heads, int) or not isinstance(size, int) or not heads * size:
        return "the number of heads or the size of their vectors is not known"
    return _Heads(x, heads, size, is_positions_first=direct is None)


def _merge_heads(given: _Heads, new: Rewriter) -> ir.Value:
    shape = new.constant(np.array([0, 0, given.heads * given.size], np.int64), "shape")
    result = new.op("Reshape", given.x, shape, version=14)
    return new.op("Transpose", result, perm=list(_SWAP_FIRST_TWO)) if given.is_positions_first else result


absorb_transposes = rules_pass(
    "absorb_transposes",
    [AbsorbInMatMul(), AbsorbInStacks(), AbsorbInGemm(), AbsorbInAttention()],
    result="transposes absorbed",
    requires=frozenset({"shapes"}),
)
