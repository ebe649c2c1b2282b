"""Keeps the codes of a GGUF file where products read them.

The codes replace a matrix only if the matrix still has exactly the numbers that the codes stand for. Other passes may
therefore transpose, merge and copy matrices before.
"""

from __future__ import annotations

import onnx_ir as ir

from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, coded_product, matrix_of
from compiler.rewrite.low_bit import PackedWeights
from compiler.rewrite.pattern import Match
from compiler.rewrite.report import Pass
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass
from compiler.rewrite.stored.fit import Blocks

__all__ = ["keep_blocks"]

_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16])


class KeepBlocks(FindingRule[tuple[PackedWeights, str]]):
    """`MatMul(A, W)` → the plan's `MatMulNBits(A, codes, scales, zeros)`, with the codes of the file.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT
    notable = True

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    def check(self, match: Match) -> tuple[PackedWeights, str] | str:
        """The file has codes for exactly these numbers."""
        found = matrix_of(match)
        if isinstance(found, str):
            return found
        if match["w"].dtype not in _FLOATS:
            return f"the weights are {match['w'].dtype}"
        weights, is_transposed = found
        return self.blocks.of(weights if is_transposed else weights.T) or "the file has no codes for these numbers"

    def rewrite(self, match: Match, found: tuple[PackedWeights, str], new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        packed, kind = found
        new.note, new.weights = f"{kind}, {match.constant('w').size} weights", match["w"].name or ""
        return coded_product(new, match, packed)


def keep_blocks(blocks: Blocks) -> Pass:
    """The pass that gives products the codes of a file."""
    facts = {"requires": frozenset({"sorted", "shapes"}), "needed": True}
    return rules_pass("keep_blocks", [KeepBlocks(blocks)], result="matrices kept as codes", **facts)
