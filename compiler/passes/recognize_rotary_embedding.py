"""Fuses operators that compute rotary position embeddings into RotaryEmbedding.

The result is the RotaryEmbedding of `candle.plan`: ONNX's operator, except that its tables may have one batch for all
batches of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, rank, same_shape
from compiler.rewrite.last_axis import Part, last_size, part_of
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import permutation_of, reordered_shape, typed
from compiler.rewrite.rotary_table import RotaryTable
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_rotary_embedding"]

_ROTARY = "RotaryEmbedding"
_HEADS_SECOND = (0, 2, 1, 3)


@dataclass(frozen=True)
class _Rotation:
    """The rotated value `[N, heads, L, D]`, and the tables of cosines and sines."""

    x: ir.Value
    tables: list[RotaryTable]


class _Recognize(FindingRule[_Rotation]):
    """The base of rules that find the rotation of a whole value `[N, heads, L, D]`."""

    interleaved: ClassVar[bool] = False
    allow_shared_intermediates = True
    looks_above = 8  # the parts of the value, and the nodes that make the halves of a table equal

    def rotated(self, match: Match) -> ir.Value | str:
        """The rotated value; or the reason why the pairs are not its elements."""
        first, second = part_of(match["first"]), part_of(match["second"])
        if first is None or second is None or first.source is not second.source:
            return "the pairs are not parts of one value"
        size = last_size(first.source) or 0
        expected = _interleaved(first.source, size) if self.interleaved else _halves(first.source, size)
        return (
            first.source
            if size and size % 2 == 0 and (first, second) == expected
            else "the pairs do not form a rotation"
        )

    def tables(self, match: Match, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The cosines and sines."""
        return match["cos"], match["sin"]

    def check(self, match: Match) -> _Rotation | str:
        """The whole value is rotated, by tables that fit its positions."""
        x = self.rotated(match)
        if isinstance(x, str):
            return x
        if rank(x) != 4 or not same_shape(x, match.root.outputs[0]):
            return "the shape of the result may differ from that of a value of rank 4"
        tables: list[RotaryTable] = []
        for value in self.tables(match, x):
            table = RotaryTable.of(value, x)
            if isinstance(table, str):
                return table
            tables.append(table)
        return "the tables have different shapes" if tables[0] != tables[1] else _Rotation(x, tables)

    def rewrite(self, match: Match, found: _Rotation, new: Rewriter) -> ir.Value:
        """The RotaryEmbedding."""
        tables = [table.halved(new) for table in found.tables]
        return new.op(_ROTARY, found.x, *tables, domain=PLAN_DOMAIN, interleaved=int(self.interleaved))


class RotateHalf(_Recognize):
    """`x · cos + concat(-x₂, x₁) · sin` → `RotaryEmbedding(x)`, if both halves of each table are equal."""

    pattern = Op(
        "Add",
        Op("Mul", Var("one"), Var("other"), name="scaled"),
        Op("Mul", Op("Concat", Op("Neg", Var("second")), Var("first"), name="swapped"), Var("sin")),
    )

    def rotated(self, match: Match) -> ir.Value | str:
        """The value with swapped halves, if it is also the factor of the cosines; or the reason why not."""
        x = super().rotated(match)
        if isinstance(x, str):
            return x
        is_scaled = any(value is x for value in match.node("scaled").inputs)
        return x if is_scaled and same_shape(x, match["swapped"]) else "another value is swapped"

    def tables(self, match: Match, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The cosines, which are the other factor of `x`, and the sines."""
        return match["other"] if match["one"] is x else match["one"], match["sin"]


_ROTATED = (
    Op("Sub", Op("Mul", Var("first"), Var("cos")), Op("Mul", Var("second"), Var("sin"))),
    Op("Add", Op("Mul", Var("first"), Var("sin")), Op("Mul", Var("second"), Var("cos"))),
)


class RotatePairs(_Recognize):
    """`concat(x₁ · cos - x₂ · sin, x₁ · sin + x₂ · cos)` → `RotaryEmbedding(x)`."""

    pattern = Op("Concat", *_ROTATED)


class RotateNeighbors(_Recognize):
    """`reshape(stack(x₁ · cos - x₂ · sin, x₁ · sin + x₂ · cos))` → `RotaryEmbedding(x)` of neighbors `x₁`, `x₂`.

    The stack is `[…, D / 2, 2]`, and the reshape reads it as `[…, D]`.
    """

    pattern = Op(
        "Reshape",
        Op(
            "Concat",
            Op("Unsqueeze", _ROTATED[0], rest=True, name="one"),
            Op("Unsqueeze", _ROTATED[1], rest=True, name="other"),
            name="stacked",
        ),
        Var(),
    )
    interleaved = True

    def rotated(self, match: Match) -> ir.Value | str:
        """The rotated value, if the parts are stacked along a new last axis; or the reason why not."""
        sizes = [last_size(match[name]) for name in ("one", "other", "stacked")]
        return super().rotated(match) if sizes == [1, 1, 2] else "neighbors are not stacked"


class TakeRest(FindingRule[Part]):
    """`concat(RotaryEmbedding(x[:R]), x[R:])` → `RotaryEmbedding(x, rotary_embedding_dim=R)`."""

    pattern = Op("Concat", Op(_ROTARY, rest=True, domain=PLAN_DOMAIN, name="rotary"), Var("rest"))
    looks_above = 1

    def check(self, match: Match) -> Part | str:
        """The two parts make up one value of rank 4."""
        node = match.node("rotary")
        rotated, rest = part_of(node.inputs[0]), part_of(match["rest"])
        if rotated is None or rest is None or not same_shape(rotated.source, match.root.outputs[0]):
            return "the parts do not make up one value"
        size = last_size(rotated.source) or 0
        if rank(rotated.source) != 4 or (rotated, rest) != _cut(rotated.source, rotated.stop, size):
            return "the parts do not make up one value"
        return rotated

    def rewrite(self, match: Match, found: Part, new: Rewriter) -> ir.Value:
        """The rotation of the whole value."""
        node = match.node("rotary")
        result = new.like(node, found.source, *node.inputs[1:])
        new.nodes[-1].attributes["rotary_embedding_dim"] = ir.AttrInt64("rotary_embedding_dim", found.stop)
        return result


@dataclass(frozen=True)
class _Sizes:
    """The number of heads, and D, of a value `[N, L, heads, D]`."""

    heads: int
    size: int


class MoveTranspose(FindingRule[_Sizes]):
    """`RotaryEmbedding(Transpose(x))` → `Transpose(RotaryEmbedding(x))`, so that attention can absorb the transpose.

    `x` is `[N, L, heads, D]`, and is rotated as `[N, L, heads · D]`.
    """

    pattern = Op(_ROTARY, Op("Transpose", Var("x"), name="transposed"), Var("cos"), Var("sin"), domain=PLAN_DOMAIN)

    def check(self, match: Match) -> _Sizes | str:
        """The transpose swaps heads and positions, and the number of heads and D are known."""
        x = match["x"]
        if permutation_of(match.node("transposed")) != _HEADS_SECOND or x.shape is None:
            return "the transpose swaps other axes"
        heads, size = x.shape.dims[2:]
        if not isinstance(heads, int) or not isinstance(size, int) or heads * size == 0:
            return "the number of heads or the size of their vectors is not known"
        return _Sizes(heads, size)

    def rewrite(self, match: Match, found: _Sizes, new: Rewriter) -> ir.Value:
        """The rotation, then the transpose."""
        x, heads, size = match["x"], found.heads, found.size
        dims = () if x.shape is None else x.shape.dims
        flat = _reshaped(x, (0, 0, heads * size), [*dims[:2], heads * size], new)
        rotated = typed(new.like(match.root, flat, match["cos"], match["sin"]), x.type, flat.shape)
        new.nodes[-1].attributes["num_heads"] = ir.AttrInt64("num_heads", heads)
        result = new.op("Transpose", _reshaped(rotated, (0, 0, heads, size), dims, new), perm=_HEADS_SECOND)
        return typed(result, x.type, reordered_shape(x.shape, _HEADS_SECOND))


def _reshaped(
    value: ir.Value, target: tuple[int, ...], dims: Sequence[int | ir.SymbolicDim], new: Rewriter
) -> ir.Value:
    result = new.op("Reshape", value, new.constant(np.array(target, np.int64), "shape"), version=14)
    return typed(result, value.type, ir.Shape(dims))


def _cut(source: ir.Value, at: int, size: int) -> tuple[Part, Part]:
    return Part(source, 0, at), Part(source, at, size)


def _halves(source: ir.Value, size: int) -> tuple[Part, Part]:
    return _cut(source, size // 2, size)


def _interleaved(source: ir.Value, size: int) -> tuple[Part, Part]:
    return Part(source, 0, size, 2), Part(source, 1, size, 2)


recognize_rotary_embedding = rules_pass(
    "recognize_rotary_embedding",
    [RotateHalf(), RotatePairs(), RotateNeighbors(), TakeRest(), MoveTranspose()],
    result="rotations found",
    requires=frozenset({"shapes"}),
)
