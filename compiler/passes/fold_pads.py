"""Folds zero padding into the padding of the convolution or average pooling that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass

__all__ = ["fold_pads"]

_PAD = Op("Pad", Var("x"), rest=True, name="pad")


class _FoldPad(Rule):
    """The base of the rules here. The padded input may have other readers: the root then reads what was not padded."""

    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """The pads are constant zeros around the spatial axes."""
        pads = _pads_of(match.node("pad"))
        if isinstance(pads, str):
            return pads
        begin, end = np.split(pads, 2)
        if begin[:2].any() or end[:2].any():
            return "it pads the batch or the channels"
        return "it takes elements away" if (pads < 0).any() else _why_not(match.root, len(begin) - 2)

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The root with both pads."""
        root, pads = match.root, _pads_of(match.node("pad"))
        begin, end = np.split(np.asarray(pads, np.int64), 2)
        both = np.concatenate([begin[2:], end[2:]]) + np.array(_own_pads(root, len(begin) - 2))
        attributes: dict[str, Any] = {name: item for name, item in root.attributes.items() if name != "auto_pad"}
        attributes["pads"] = both.tolist()
        result: ir.Value = new.op(root.op_type, match["x"], *root.inputs[1:], version=root.version, **attributes)
        return result


class FoldIntoConv(_FoldPad):
    """`Conv(Pad(x), w)` → `Conv(x, w)` with more pads."""

    pattern = Op("Conv", _PAD, rest=True)


class FoldIntoAverage(_FoldPad):
    """`AveragePool(Pad(x))` that counts its own pads → `AveragePool(x)` with more pads."""

    pattern = Op("AveragePool", _PAD)

    def check(self, match: Match) -> str | None:
        """Pads count as zeros, and no window begins beyond them."""
        attributes = match.root.attributes
        counts = "count_include_pad" in attributes and attributes["count_include_pad"].as_int() == 1
        rounds_up = "ceil_mode" in attributes and attributes["ceil_mode"].as_int() == 1
        if not counts or rounds_up:
            return "its own pads do not count, or it rounds up"
        return super().check(match)


def _pads_of(pad: ir.Node) -> np.ndarray | str:
    """The pads of all axes: those before, then those after; or why they are not plain zeros of known number."""
    mode = pad.attributes["mode"].as_string() if "mode" in pad.attributes else "constant"
    if mode != "constant":
        return f"it pads with mode {mode}"
    inputs = [*pad.inputs, None, None, None][:4]
    fill = constant_of(inputs[2])
    if (inputs[2] is not None and fill is None) or (fill is not None and fill.any()):
        return "it pads with another value than zero"
    if "value" in pad.attributes and pad.attributes["value"].as_float() != 0:
        return "it pads with another value than zero"
    size = rank(pad.inputs[0])
    if size is None:
        return "the rank is not known"
    given = np.array(pad.attributes["pads"].as_ints()) if "pads" in pad.attributes else constant_of(inputs[1])
    axes = constant_of(inputs[3]) if inputs[3] is not None else np.arange(size)
    if given is None or axes is None or len(given) != 2 * len(axes) or size < 3:
        return "the pads are not known"
    full = np.zeros((2, size), np.int64)
    full[:, axes] = given.reshape(2, -1)
    return full.ravel()


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
