"""Quantizes constant weights to codes of 8 or 4 bits, as the option `weights` asks.

Products keep the codes in memory. Convolutions and recurrent operators get a DequantizeLinear of 8 bits, which the
runtime computes when it loads the plan. Tables have 8 bits: the rows that a Gather reads become floats after it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, CONSTANT_TABLE, coded_product, rows_of, table_of
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.permutation import typed
from compiler.rewrite.quantized_rows import WORST, QuantizedRows
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules
from compiler.rewrite.weight_format import WeightFormat

__all__ = ["quantize_weights"]

_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16])
_EIGHT = WeightFormat.parse("int8")


@dataclass(frozen=True)
class _Weights:
    """Quantized rows, and a sentence about them."""

    rows: QuantizedRows
    note: str

    def tell(self, new: Rewriter) -> None:
        """Adds the sentence and the error to the report."""
        new.note, new.error = self.note, self.rows.error


class _Quantize(FindingRule[_Weights]):
    """The base of the rules. `w` is the name of the weights in the pattern."""

    def __init__(self, format: WeightFormat, keep: KeptWeights) -> None:
        self.format, self.keep = format, keep

    @abstractmethod
    def rows(self, match: Match) -> np.ndarray | str:
        """The weights as rows, and each row gets its own scales; or a reason against it."""

    def check(self, match: Match) -> _Weights | str:
        """The weights are finite floats, large enough, and close to their codes; and no name of `keep` matches."""
        if reason := self.keep.reason(match, _FLOATS):
            return reason
        rows = self.rows(match)
        if isinstance(rows, str):
            return rows
        found = QuantizedRows.of(rows, self.format)
        if not found.error <= WORST:
            return f"the error would be {found.error:.0%} of the weights"
        return _Weights(found, f"int{found.bits}, {rows.size} weights, relative error {found.error:.2%}")


class QuantizeProduct(_Quantize):
    """`MatMul(A, W)` → the plan's `MatMulNBits(A, codes, scales)`.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT
    notable = True

    def rows(self, match: Match) -> np.ndarray | str:
        """The columns of `W`."""
        return rows_of(match)

    def rewrite(self, match: Match, found: _Weights, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        found.tell(new)
        return coded_product(new, match, found.rows.packed(match.constant("w").size // len(found.rows.codes)))


class QuantizeTable(_Quantize):
    """`Gather(W, rows)` → `Cast(Gather(codes, rows)) · Gather(scales, rows)`, with a scale for each row."""

    pattern = CONSTANT_TABLE
    notable = True

    def __init__(self, keep: KeptWeights) -> None:
        super().__init__(_EIGHT, keep)

    def rows(self, match: Match) -> np.ndarray | str:
        """The rows of a table."""
        return table_of(match)

    def rewrite(self, match: Match, found: _Weights, new: Rewriter) -> ir.Value:
        """The codes and scales of the rows, multiplied."""
        found.tell(new)
        rows, name = found.rows, match["w"].name or "weights"
        depth = match.constant("w").shape[1]
        codes = new.constant(np.ascontiguousarray(rows.signed[:, :depth]), f"{name}.codes")
        scales = new.constant(rows.scales, f"{name}.scales")
        numbers = new.op("Cast", new.op("Gather", codes, match["places"], axis=0), to=match["w"].dtype)
        return new.op("Mul", numbers, new.op("Gather", scales, match["places"], axis=0))


class QuantizeStored(_Quantize):
    """`Conv(x, W)` → `Conv(x, DequantizeLinear(codes, scales))`; also for the weights of recurrent operators."""

    pattern = AnyOf(
        *(Op(kind, Var("x"), Const("w"), rest=True) for kind in ("Conv", "ConvTranspose")),
        *(Op(kind, Var("x"), Const("w"), rest=True) for kind in ("LSTM", "GRU", "RNN")),
        *(Op(kind, Var("x"), Var("v"), Const("w"), rest=True) for kind in ("LSTM", "GRU", "RNN")),
    )
    notable = True

    def __init__(self, keep: KeptWeights) -> None:
        super().__init__(_EIGHT, keep)

    def rows(self, match: Match) -> np.ndarray | str:
        """The weights with the axis of the scales first."""
        weights = match.constant("w")
        if weights.ndim < 2:
            return "the weights have no axis of channels"
        axis = self.axis(match)
        return np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)

    def axis(self, match: Match) -> int:
        """The axis of output channels: 1 for ConvTranspose `[C, M/group, …]` and recurrent operators `[2, 4·H, …]`."""
        return 0 if match.root.op_type == "Conv" else 1

    def rewrite(self, match: Match, found: _Weights, new: Rewriter) -> Sequence[ir.Value]:
        """The operator with dequantized weights."""
        found.tell(new)
        root, weights, rows = match.root, match["w"], found.rows
        array, axis = match.constant("w"), self.axis(match)
        first = np.moveaxis(array, axis, 0)
        codes = np.moveaxis(rows.signed[:, : first[0].size].reshape(first.shape), 0, axis)
        name = weights.name or "weights"
        dequantized = new.op(
            "DequantizeLinear",
            new.constant(np.ascontiguousarray(codes), f"{name}.codes"),
            new.constant(rows.scales[:, 0], f"{name}.scales"),
            axis=axis,
        )
        typed(dequantized, weights.type, weights.shape)
        inputs = [dequantized if value is weights else value for value in root.inputs]
        attributes: dict[str, Any] = dict(root.attributes)
        count = len(root.outputs)
        values = new.op(root.op_type, *inputs, outputs=count, domain=root.domain, version=root.version, **attributes)
        return [typed(value, old.type, old.shape) for value, old in zip(values, root.outputs, strict=True)]


def quantize_weights(format: str, keep: Sequence[str]) -> Pass:
    """The pass that quantizes weights to a format, such as `int8`, but not those with a name in `keep`."""
    chosen = WeightFormat.parse(format)
    kept = KeptWeights(keep)  # of all runs: a fused product no longer matches in a later one

    def apply(model: ir.Model, report: PassReport) -> None:
        apply_rules(model, [QuantizeProduct(chosen, kept), QuantizeTable(kept), QuantizeStored(kept)], report)
        kept.check_names()

    requires = frozenset({"sorted", "shapes"})
    return Pass("quantize_weights", apply, result="weights quantized", requires=requires, needed=True)
