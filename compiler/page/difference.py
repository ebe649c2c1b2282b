"""The page of the difference between two models or plans."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from compiler.page.places import Places

if TYPE_CHECKING:
    from compiler.accuracy.compare import Comparison
    from compiler.accuracy.layerwise import Layer
    from compiler.diff import Difference
    from compiler.diff.numbers import Numbers

__all__ = ["difference_data"]

JsonObject = dict[str, Any]


def difference_data(before: str, after: str, found: Difference, summary: str) -> JsonObject:
    """The data of the page. `before` and `after` name the two models or plans, and `summary` says what differs."""
    places = Places({each.origin.module: each.origin.layer for each in found.nodes if each.origin.layer})
    nodes = [{**each.data, "place": places.of(each.origin)} for each in found.nodes]
    constants = [{**each.data, "max_abs": _finite(each.max_abs)} for each in found.constants]
    return {
        **found.data,
        "title": f"{before} and {after}",
        "summary": summary,
        "names": [before, after],
        "nodes": nodes,
        "constants": constants,
        "numbers": None if found.numbers is None else _numbers(found.numbers),
        "places": places.data,
        "classes": places.classes,
    }


def _numbers(numbers: Numbers) -> JsonObject:
    """The results of both on the same inputs: the outputs, and the intermediate values that correspond."""
    first = None if numbers.first is None else numbers.values.index(numbers.first)
    return {
        "problem": numbers.problem,
        "outputs": [_compared(each) for each in numbers.outputs],
        "values": [_value(each) for each in numbers.values],
        "first": first,
    }


def _value(layer: Layer) -> JsonObject:
    return {"step": layer.step, "op": layer.op, "origin": layer.origin, **_compared(layer.output)}


def _compared(output: Comparison) -> JsonObject:
    """The difference of an output. A number that is not finite, which JSON lacks, becomes null."""
    kind = {"name": output.name, "dtype": output.dtype, "shape": list(output.shape), "verdict": output.verdict}
    said = {"max_ulp": output.max_ulp, "note": output.note, "problem": output.problem}
    return {**kind, **said, **{key: _finite(getattr(output, key)) for key in ("max_abs", "max_rel", "allowed")}}


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
