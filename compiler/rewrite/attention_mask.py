"""The masks of scaled dot-product attention: added to the scores, or selecting between the scores and −∞."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.ir.views.reduce import axes_of, keeps_axes
from compiler.ir.views.triangle import TriangleView
from compiler.rewrite.pattern import Match
from compiler.rewrite.permutation import typed
from compiler.rewrite.rule import Rewriter

__all__ = ["dims_of", "is_blind", "is_causal", "leaves_a_key", "mask_of", "why_not_mask"]


_LOWEST = -3e38
"""A mask value of at most this number gives a key the attention weight 0."""


@dataclass(frozen=True)
class _Choice:
    """A mask that is 0 where `condition` is true, and `other` elsewhere."""

    condition: ir.Value
    other: float


def why_not_mask(match: Match) -> str | None:
    """The reason why Attention does not accept the mask, which the pattern names `mask`, `shown` or `hidden`."""
    given = _given(match)
    if given is None:
        return None
    mask, scores = dims_of(given), dims_of(match["product"])
    if mask is None or scores is None or not mask or None in scores or mask[-1] != scores[-1]:
        return "the mask is not known to have an element for each key"
    if len(mask) > len(scores) or any(dim not in (1, of) for dim, of in zip(mask[::-1], scores[::-1], strict=False)):
        return "the mask is larger than the scores"
    return None


def mask_of(match: Match, new: Rewriter) -> ir.Value | None:
    """The mask as an input of Attention: numbers to add, or booleans that are true for visible keys."""
    if match.has("hidden"):
        return _negated(match["hidden"], new)
    if match.has("shown"):
        return match["shown"]
    if not match.has("mask"):
        return None
    mask, choice = match["mask"], _choice(match["mask"])
    sees = choice is not None and choice.other == -np.inf and dims_of(choice.condition) == dims_of(mask)
    return choice.condition if choice is not None and sees else mask


def leaves_a_key(match: Match) -> bool:
    """Whether every query is known to attend to a key: no row of the mask hides all keys."""
    given = _given(match)
    array = constant_of(given)
    if given is None:
        return True
    if array is None:
        choice = _choice(given) if match.has("mask") else None
        return choice is not None and bool(np.isfinite(choice.other))
    hidden = np.isneginf(array.astype(np.float64)) if match.has("mask") else array == match.has("hidden")
    return not bool(hidden.all(axis=-1).any())


def is_blind(value: ir.Value, match: Match) -> bool:
    """Whether the value is true exactly where the mask leaves no key: where its largest element is −∞."""
    given = match["mask"] if match.has("mask") else None
    mask, found = constant_of(given), constant_of(value)
    if given is not None and mask is not None and found is not None:
        return mask.ndim > 0 and np.array_equal(np.isneginf(mask.astype(np.float64)).all(-1, keepdims=True), found)
    node = value.producer()
    if given is None or node is None or node.op_identifier() != ("", "Equal", "") or _number(node.inputs[1]) != -np.inf:
        return False
    highest = node.inputs[0].producer() if node.inputs[0] is not None else None
    if highest is None or highest.op_identifier() != ("", "ReduceMax", "") or highest.inputs[0] is not given:
        return False
    return keeps_axes(highest) and axes_of(highest) == (-1,)


def is_causal(match: Match) -> bool:
    """Whether the mask is causal, by a triangle that the model computes at run time."""
    if match.has("shown"):
        return _is_triangle(match["shown"], match)
    if match.has("hidden"):
        return _is_above_triangle(match["hidden"], match)
    where = match["mask"].producer() if match.has("mask") else None
    if where is None or where.op_identifier() != ("", "Where", "") or where.inputs[0] is None:
        return False
    one, other = (_number(value) for value in where.inputs[1:])
    if other == 0 and one is not None and one <= _LOWEST:
        return _is_above_triangle(where.inputs[0], match)
    return one == 0 and other is not None and other <= _LOWEST and _is_triangle(where.inputs[0], match)


def _is_above_triangle(hidden: ir.Value, match: Match) -> bool:
    node = hidden.producer()
    if node is None or node.domain or node.inputs[0] is None:
        return False
    is_negated = node.op_type == "Not" or (node.op_type == "Equal" and _number(node.inputs[1]) == 0)
    return is_negated and _is_triangle(node.inputs[0], match)


def _is_triangle(value: ir.Value, match: Match) -> bool:
    """Whether the value is a lower triangular matrix of ones, with a row for each query and a column for each key."""
    view = TriangleView[ir.Value].of(value.producer(), complete=True)
    scores = dims_of(match["product"])
    if view is None or view.is_upper or scores is None or None in scores[-2:]:
        return False
    offset = 0 if view.diagonal is None else _number(view.diagonal)
    return offset == 0 and _is_all_ones(view.x) and dims_of(value) == scores[-2:]


def _is_all_ones(value: ir.Value | None) -> bool:
    node = None if value is None else value.producer()
    if node is None or node.domain:
        return False
    if node.op_type == "ConstantOfShape" and "value" in node.attributes:
        return bool(node.attributes["value"].as_tensor().numpy().item() == 1)
    return node.op_type == "Expand" and _number(node.inputs[0]) == 1


def _number(value: ir.Value | None) -> float | None:
    array = constant_of(value)
    return None if array is None or array.size != 1 else float(array.item())


def dims_of(value: ir.Value | None) -> list[int | str | None] | None:
    """The sizes, symbols, and `None` for unknown dimensions; `None` if the rank is unknown."""
    if value is None or value.shape is None:
        return None
    return [dim if isinstance(dim, int) else dim.value for dim in value.shape.dims]


def _given(match: Match) -> ir.Value | None:
    return next((match[name] for name in ("mask", "shown", "hidden") if match.has(name)), None)


def _negated(hidden: ir.Value, new: Rewriter) -> ir.Value:
    array, node = constant_of(hidden), hidden.producer()
    if array is not None:
        return new.constant(~array, hidden.name or "mask")
    if node is not None and node.op_identifier() == ("", "Not", "") and node.inputs[0] is not None:
        return node.inputs[0]
    return typed(new.op("Not", hidden, version=1), hidden.type, hidden.shape)


def _choice(mask: ir.Value) -> _Choice | None:
    """The view of a mask that is `Where(condition, 0, other)`; `None` for another mask."""
    node = mask.producer()
    if node is None or node.op_identifier() != ("", "Where", "") or node.inputs[0] is None:
        return None
    one, other = constant_of(node.inputs[1]), constant_of(node.inputs[2])
    if one is None or other is None or one.size != 1 or other.size != 1 or float(one.item()) != 0:
        return None
    return _Choice(node.inputs[0], float(other.item()))
