"""Keeps the codes of a GGUF file where products read them, and in tables.

The codes replace a matrix only if the matrix still has exactly the numbers that the codes stand for. Other passes may
therefore transpose, merge and copy matrices before.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, CONSTANT_TABLE, coded_product, rows_of, table_of
from compiler.rewrite.low_bit import PackedWeights
from compiler.rewrite.pattern import Match
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules
from compiler.rewrite.stored.fit import Blocks

__all__ = ["keep_blocks"]

Kept = tuple[PackedWeights, str]
"""Codes, and the type of their blocks in the file."""

_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16])


class _Keep(FindingRule[Kept]):
    """The base of the rules. `w` is the name of the weights in the pattern."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    @abstractmethod
    def rows(self, match: Match) -> np.ndarray | str:
        """The weights as rows of the file; or a reason against keeping their codes."""

    def check(self, match: Match) -> Kept | str:
        """The file has codes for exactly these numbers."""
        if match["w"].dtype not in _FLOATS:
            return f"the weights are {match['w'].dtype}"
        rows = self.rows(match)
        return rows if isinstance(rows, str) else self.blocks.of(rows) or "the file has no codes for these numbers"

    def tell(self, match: Match, found: Kept, new: Rewriter) -> None:
        """Adds a sentence to the report."""
        new.note, new.weights = f"{found[1]}, {match.constant('w').size} weights", match["w"].name or ""


class KeepProduct(_Keep):
    """`MatMul(A, W)` → the plan's `MatMulNBits(A, codes, scales, zeros)`, with the codes of the file.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT
    notable = True

    def rows(self, match: Match) -> np.ndarray | str:
        """The columns of `W`."""
        return rows_of(match)

    def rewrite(self, match: Match, found: Kept, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        self.tell(match, found, new)
        return coded_product(new, match, found[0])


class KeepTable(_Keep):
    """`Gather(W, rows)` → `(Gather(codes, rows) − Gather(zeros, rows)) · Gather(scales, rows)`."""

    pattern = CONSTANT_TABLE

    def rows(self, match: Match) -> np.ndarray | str:
        """The rows of a table."""
        return "the number of axes of the result is not known" if rank(match["places"]) is None else table_of(match)

    def rewrite(self, match: Match, found: Kept, new: Rewriter) -> ir.Value:
        """The codes of the rows, dequantized to float32, in the dtype of the table."""
        self.tell(match, found, new)
        (packed, _), name, axes = found, match["w"].name or "weights", rank(match["places"]) or 0
        codes, scales, zeros = (
            None if array is None else new.op("Gather", new.constant(array, f"{name}.{kind}"), match["places"], axis=0)
            for kind, array in (("codes", packed.codes), ("scales", packed.scales), ("zeros", packed.zeros))
        )
        last = new.constant(np.array([-1]))
        if packed.bits == 4:
            low = new.op("BitwiseAnd", codes, new.constant(np.array(15, np.uint8)), version=18)
            high = new.op("BitShift", codes, new.constant(np.array(4, np.uint8)), direction="RIGHT", version=11)
            both = [new.op("Unsqueeze", half, last, version=13) for half in (low, high)]
            codes = _joined(new, new.op("Concat", *both, axis=-1), axes + 1, 2 * packed.codes.shape[-1])
        half = new.constant(np.array(1 << (packed.bits - 1), np.float32))
        offsets = half if zeros is None else new.op("Unsqueeze", zeros, last, version=13)
        steps = new.op("Sub", new.op("Cast", codes, to=ir.DataType.FLOAT), offsets)
        numbers = new.op("Mul", steps, new.op("Unsqueeze", scales, last, version=13))
        numbers, kind = _joined(new, numbers, axes, packed.depth), match["w"].dtype
        return numbers if kind == ir.DataType.FLOAT or kind is None else new.op("Cast", numbers, to=kind)


def _joined(new: Rewriter, value: ir.Value, axes: int, size: int) -> ir.Value:
    """The value with the first axes, and one axis of this size in place of the others."""
    return new.op("Reshape", value, new.constant(np.array([0] * axes + [size]), "shape"))


def _keep_blocks(model: ir.Model, report: PassReport) -> None:
    """Gives products and tables the codes that `replace_weights` recorded."""
    blocks = model.meta.get(Blocks.KEY)
    if blocks is not None:
        apply_rules(model, [KeepProduct(blocks), KeepTable(blocks)], report)


keep_blocks = Pass(
    "keep_blocks",
    _keep_blocks,
    result="matrices kept as codes",
    requires=frozenset({"sorted", "shapes"}),
    needed=True,
)
