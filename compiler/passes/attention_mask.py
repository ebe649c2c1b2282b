"""The masks of scaled dot-product attention: added to the scores, or by choice of scores or −∞."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.graph import constant_of
from compiler.passes.pattern import Match
from compiler.passes.permutation import typed
from compiler.passes.rule import Rewriter

__all__ = ["dims_of", "leaves_a_key", "mask_of", "why_not_mask"]


@dataclass(frozen=True)
class _Choice:
    """A condition that chooses between two numbers, the first of which is 0."""

    condition: ir.Value
    other: float


def why_not_mask(match: Match) -> str | None:
    """Why the mask, which is named `mask`, `shown` or `hidden`, is none of Attention."""
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
    """The mask as Attention takes it: what is added, or whether a key is seen."""
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
    """Whether every query is certain to see a key: no row of the mask hides all."""
    given = _given(match)
    array = constant_of(given)
    if given is None:
        return True
    if array is None:
        choice = _choice(given) if match.has("mask") else None
        return choice is not None and bool(np.isfinite(choice.other))
    hidden = np.isneginf(array.astype(np.float64)) if match.has("mask") else array == match.has("hidden")
    return not bool(hidden.all(axis=-1).any())


def dims_of(value: ir.Value | None) -> list[int | str | None] | None:
    """Sizes, symbols, and `None` for what is not known."""
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
    """What a mask that is one of two numbers depends on."""
    node = mask.producer()
    if node is None or node.op_identifier() != ("", "Where", "") or node.inputs[0] is None:
        return None
    one, other = constant_of(node.inputs[1]), constant_of(node.inputs[2])
    if one is None or other is None or one.size != 1 or other.size != 1 or float(one.item()) != 0:
        return None
    return _Choice(node.inputs[0], float(other.item()))
