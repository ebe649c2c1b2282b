"""Replaces the remaining batch normalizations with a product and a sum, which a fused step can include."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.passes.fold_batch_norm import Affine, scale_and_shift
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["expand_batch_norm"]


class ExpandBatchNorm(FindingRule[Affine]):
    """`BatchNormalization(x)` → `x · scale + shift`; both are `[C, 1, …]`, computed in float64 and rounded once."""

    pattern = Op("BatchNormalization", Var("x"), Const("scale"), Const("bias"), Const("mean"), Const("var"))
    notable = True

    def check(self, match: Match) -> Affine | str:
        """The input is float32 with C channels, and the parameters are float32 constants `[C]`."""
        found = scale_and_shift(match.root)
        if isinstance(found, str):
            return found
        if any(match[name].dtype != ir.DataType.FLOAT for name in ("x", "scale", "bias", "mean", "var")):
            return "only float32 is fused"
        shape = match["x"].shape
        if shape is None or shape.rank() < 2 or shape[1] != found[0].size:
            return "the number of channels is not known, or differs from that of the parameters"
        with np.errstate(over="ignore"):
            is_finite = all(np.isfinite(each.astype(np.float32)).all() for each in found)
        return found if is_finite else "the scale or the shift is not finite"

    def rewrite(self, match: Match, found: Affine, new: Rewriter) -> ir.Value:
        """A product and a sum."""
        name = match.root.outputs[0].name
        ones = (1,) * ((rank(match["x"]) or 2) - 2)
        scale, shift = (each.astype(np.float32).reshape(-1, *ones) for each in found)
        product = new.op("Mul", match["x"], new.constant(scale, f"{name}.scale"))
        product.type, product.shape = match["x"].type, match["x"].shape
        return new.op("Add", product, new.constant(shift, f"{name}.shift"))


expand_batch_norm = rules_pass(
    "expand_batch_norm", [ExpandBatchNorm()], result="batch norms expanded", requires=frozenset({"shapes"})
)
