"""Absorbs transposes into matrix products and attention, which read transposed inputs by strides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, constant_of, rank
from compiler.rewrite.pattern import AnyOf, Match, Op, Var
from compiler.rewrite.permutation import permutation_of, reordered_shape, typed
from compiler.rewrite.rule import FindingRule, Rewriter, Rule, rules_pass

__all__ = ["absorb_transposes"]

_SWAPPED = (1, 0)
_IN_ORDER = (0, 1, 2, 3)
_HEADS_SECOND = (0, 2, 1, 3)
_POSITIONS_FIRST = (1, 2, 0, 3)
_ROWS_TURNED = (1, 0, 2)
_TRANSPOSE = Op("Transpose", Var())
_EITHER_SIDE = ((_TRANSPOSE, Var()), (Var(), _TRANSPOSE))


def _given(value: ir.Value | None, perm: tuple[int, ...]) -> ir.Value | None:
    """The input of the Transpose with this order that gives the value; `None` if there is none."""
    node = None if value is None else value.producer()
    if node is None or node.op_identifier() != ("", "Transpose", "") or permutation_of(node) != perm:
        return None
    return node.inputs[0]


class AbsorbInMatMul(Rule):
    """`MatMul(Aᵀ, B)`, `MatMul(A, Bᵀ)` of two matrices → `Gemm(A, B)`, which takes either side transposed."""

    pattern = AnyOf(Op("MatMul", _TRANSPOSE, Var()), Op("MatMul", Var(), _TRANSPOSE))
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """Both sides are matrices, and one is transposed, not only passed on."""
        if any(rank(value) != 2 for value in match.root.inputs):
            return "a side is not a matrix"
        return None if any(_given(value, _SWAPPED) for value in match.root.inputs) else "no axes are swapped"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The product of the values before the transposes."""
        a, b = match.root.inputs
        given_a, given_b = _given(a, _SWAPPED), _given(b, _SWAPPED)
        trans_a, trans_b = int(given_a is not None), int(given_b is not None)
        return new.op("Gemm", given_a or a, given_b or b, version=13, transA=trans_a, transB=trans_b)


class AbsorbInStacks(Rule):
    """`MatMul(Aᵀ, B)`, `MatMul(A, Bᵀ)` of stacks of matrices → the plan's `MatMul`, which takes either transposed."""

    pattern = AnyOf(
        *(Op("MatMul", *sides, domain=domain) for domain in ("", PLAN_DOMAIN) for sides in _EITHER_SIDE),
    )
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """The transpose of a side swaps only the axes of its matrices, and the side is not constant."""
        if any((rank(value) or 0) < 2 for value in match.root.inputs):
            return "a side is not a matrix"
        if "epilogue" in match.root.attributes:
            return "it has an epilogue"
        return (
            None
            if any(map(_swapped, match.root.inputs))
            else "the transpose moves other axes than those of the matrices"
        )

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The product of the values before the transposes."""
        given, old = [_swapped(value) for value in match.root.inputs], match.root.attributes
        sides = [before or value for before, value in zip(given, match.root.inputs, strict=True)]
        flags: dict[str, Any] = {
            name: int((name in old and old[name].as_int() != 0) != (before is not None))
            for name, before in zip(("trans_a", "trans_b"), given, strict=True)
        }
        result: ir.Value = new.op("MatMul", *sides, domain=PLAN_DOMAIN, version=1, **flags)
        return result


def _swapped(value: ir.Value | None) -> ir.Value | None:
    """The input of a Transpose of the last two axes that gives the value; `None` without one, or for a constant."""
    order = tuple(range(rank(value) or 0))
    given = _given(value, (*order[:-2], *order[:-3:-1]))
    return None if constant_of(given) is not None else given


class AbsorbInGemm(Rule):
    """`Gemm(Aᵀ, B, C)`, `Gemm(A, Bᵀ, C)` → `Gemm(A, B, C)` with that side's flag turned."""

    pattern = AnyOf(Op("Gemm", _TRANSPOSE, rest=True), Op("Gemm", Var(), _TRANSPOSE, rest=True))
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """A side is transposed, not only passed on."""
        return None if any(_given(value, _SWAPPED) for value in match.root.inputs[:2]) else "no axes are swapped"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The product of the values before the transposes."""
        a, b, *rest = match.root.inputs
        given_a, given_b = _given(a, _SWAPPED), _given(b, _SWAPPED)
        result = new.like(match.root, given_a or a, given_b or b, *rest)
        for name, given in (("transA", given_a), ("transB", given_b)):
            if given is not None:
                old = match.root.attributes.get(name)
                new.nodes[-1].attributes[name] = ir.AttrInt64(name, int(old is None or not old.as_int()))
        return result


@dataclass(frozen=True)
class _Heads:
    """`x [N, L, heads, D]` of `Transpose(x) [N, heads, L, D]`; or `x [L, N, heads, D]`, and that it `is_turned`.

    `heads` and `size`, which is D, are known and not 0.
    """

    x: ir.Value
    heads: int
    size: int
    is_turned: bool


class AbsorbInAttention(FindingRule[list[_Heads]]):
    """`Transpose(Attention(Transpose(q), Transpose(k), Transpose(v), mask))` → Attention that finds the heads itself.

    The transposes swap heads and positions; views take their place: `[N, L, heads, D]` as `[N, L, heads · D]` and back.
    Where positions come before batches, whole rows of all heads are transposed.
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
        """All inputs with an axis of heads are transposed, and numbers of heads and sizes of vectors are known."""
        node, perm = match.node("attention"), permutation_of(match.root)
        if perm is None or _behind_heads(perm)[2:] != (2, 3) or len(node.outputs) > 1 or any(node.inputs[4:]):
            return "the transpose moves other axes than heads"
        given = [_before_heads(value) for value in node.inputs[:3]]
        reason = next((each for each in given if isinstance(each, str)), None)
        return reason or [each for each in given if not isinstance(each, str)]

    def rewrite(self, match: Match, found: list[_Heads], new: Rewriter) -> ir.Value:
        """Attention between two kinds of views."""
        node, output = match.node("attention"), match.root.outputs[0]
        heads, kv_heads, width = found[0].heads, found[1].heads, found[2].size
        result = new.like(node, *(_folded(each, new) for each in found), *node.inputs[3:4])
        new.nodes[-1].attributes["q_num_heads"] = ir.AttrInt64("q_num_heads", heads)
        new.nodes[-1].attributes["kv_num_heads"] = ir.AttrInt64("kv_num_heads", kv_heads)
        own = reordered_shape(node.outputs[0].shape, _HEADS_SECOND)
        typed(result, output.type, None if own is None else ir.Shape([*own.dims[:2], heads * width]))
        shape = new.constant(np.array([0, 0, heads, width], np.int64), "shape")
        result = typed(new.op("Reshape", result, shape, version=14), output.type, own)
        perm = _behind_heads(permutation_of(match.root) or _HEADS_SECOND)
        return result if perm == _IN_ORDER else new.op("Transpose", result, perm=list(perm))


def _behind_heads(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The order for axes `[N, L, heads, D]` that is equivalent to `perm` for axes `[N, heads, L, D]`."""
    return tuple(_HEADS_SECOND[axis] for axis in perm)


def _before_heads(value: ir.Value | None) -> _Heads | str:
    """The value whose transpose makes its heads an axis, or the reason why it is unknown."""
    direct, turned = _given(value, _HEADS_SECOND), _given(value, _POSITIONS_FIRST)
    x = turned if direct is None else direct
    if x is None:
        return "queries, keys and values are not all transposed"
    heads, size = x.shape.dims[2:] if x.shape is not None and len(x.shape) == 4 else (None, None)
    if not isinstance(heads, int) or not isinstance(size, int) or not heads * size:
        return "the number of heads or the size of their vectors is not known"
    return _Heads(x, heads, size, is_turned=direct is None)


def _folded(given: _Heads, new: Rewriter) -> ir.Value:
    shape = new.constant(np.array([0, 0, given.heads * given.size], np.int64), "shape")
    result = new.op("Reshape", given.x, shape, version=14)
    return new.op("Transpose", result, perm=list(_ROWS_TURNED)) if given.is_turned else result


absorb_transposes = rules_pass(
    "absorb_transposes",
    [AbsorbInMatMul(), AbsorbInStacks(), AbsorbInGemm(), AbsorbInAttention()],
    result="transposes absorbed",
    requires=frozenset({"shapes"}),
)
