"""Folds zero padding into the padding of the convolution or average pooling that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.ir.views.pad import PadView
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["fold_pads"]

_PAD = Op("Pad", Var("x"), rest=True, name="pad")


class _FoldPad(FindingRule[np.ndarray]):
    """The base of rules that fold a Pad into the root. The Pad stays if it has other readers."""

    allow_shared_intermediates = True

    def check(self, match: Match) -> np.ndarray | str:
        """The pads are constant zeros around the spatial axes. Returns their sizes: first those before, then after."""
        pads = _pads_of(match.node("pad"))
        if isinstance(pads, str):
            return pads
        begin, end = np.split(pads, 2)
        if begin[:2].any() or end[:2].any():
            return "it pads the batch or the channels"
        if (pads < 0).any():
            return "it removes elements"
        return _why_not(match.root, len(begin) - 2) or np.concatenate([begin[2:], end[2:]])

    def rewrite(self, match: Match, found: np.ndarray, new: Rewriter) -> ir.Value:
        """The root with both pads."""
        root = match.root
        both = found + np.array(_own_pads(root, len(found) // 2))
        attributes: dict[str, Any] = {name: item for name, item in root.attributes.items() if name != "auto_pad"}
        attributes["pads"] = both.tolist()
        result: ir.Value = new.op(root.op_type, match["x"], *root.inputs[1:], version=root.version, **attributes)
        return result


class FoldIntoConv(_FoldPad):
    """`Conv(Pad(x), w)` → `Conv(x, w)` with more pads."""

    pattern = Op("Conv", _PAD, rest=True)


class FoldIntoAverage(_FoldPad):
    """`AveragePool(Pad(x), count_include_pad=1)` → `AveragePool(x)` with more pads."""

    pattern = Op("AveragePool", _PAD)

    def check(self, match: Match) -> np.ndarray | str:
        """The mean includes the pads, and no window starts beyond them."""
        attributes = match.root.attributes
        counts = "count_include_pad" in attributes and attributes["count_include_pad"].as_int() == 1
        rounds_up = "ceil_mode" in attributes and attributes["ceil_mode"].as_int() == 1
        if not counts or rounds_up:
            return "the mean excludes its pads, or ceil_mode is set"
        return super().check(match)


def _pads_of(pad: ir.Node) -> np.ndarray | str:
    """The pads of all axes: those before, then those after; or the reason why they are not constant zeros."""
    view, size = PadView[ir.Value].of(pad), rank(pad.inputs[0])
    if view is None or size is None:
        return "the rank or the pads are not known"
    if view.mode != "constant":
        return f"it pads with mode {view.mode}"
    if view.number != 0:
        return "it pads with a value other than zero"
    amounts = view.amounts(size)
    return "the pads are not known" if amounts is None or size < 3 else amounts.ravel()


def _own_pads(node: ir.Node, axes: int) -> list[int]:
    return list(node.attributes["pads"].as_ints()) if "pads" in node.attributes else [0] * (2 * axes)


def _why_not(node: ir.Node, axes: int) -> str | None:
    automatic = node.attributes["auto_pad"].as_string() if "auto_pad" in node.attributes else "NOTSET"
    if automatic not in ("NOTSET", "VALID") or (automatic == "VALID" and any(_own_pads(node, axes))):
        return f"{node.op_type} pads with {automatic}"
    return None if len(_own_pads(node, axes)) == 2 * axes else "the pads have another number of axes"


fold_pads = rules_pass(
    "fold_pads", [FoldIntoConv(), FoldIntoAverage()], result="pads folded", requires=frozenset({"shapes"})
)
