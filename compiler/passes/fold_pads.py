"""Folds zero padding into the padding of the convolution or average pooling that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.ir.views.pad import PadView
from compiler.ir.views.window import WindowView
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
        window = WindowView[ir.Value].of(root)
        both = found if window is None else found + np.array(window.pads_of(len(found) // 2))
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
        window = WindowView[ir.Value].of(match.root)
        if window is None or not window.counts_pads or window.rounds_up:
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


def _why_not(node: ir.Node, axes: int) -> str | None:
    window = WindowView[ir.Value].of(node)
    if window is None:
        return f"the attributes of {node.op_type} are not valid"
    own, automatic = window.pads_of(axes), window.auto_pad
    if automatic not in ("NOTSET", "VALID") or (automatic == "VALID" and any(own)):
        return f"{node.op_type} pads with {automatic}"
    return None if len(own) == 2 * axes else "the pads have another number of axes"


fold_pads = rules_pass(
    "fold_pads", [FoldIntoConv(), FoldIntoAverage()], result="pads folded", requires=frozenset({"shapes"})
)
