"""What one check finds: JSON between processes, a mark on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

Result = dict[str, Any]
"""The `number` and `name` of a check, its `verdict`, a `note`, and the figures that its section shows.

A result that is `partial` is followed by another one of the same number, unless its process ends early.
"""

MARKS = {
    "equal": "✓",
    "near": "≈",
    "left out": "–",
    "different": "✗",
    "failed": "✗",
    "not run": "✗ not run:",
    "refused": "✗",
}
"""The verdicts, and their marks on the page."""
GOOD = ("equal", "near", "left out")
"""The verdicts that leave the exit code 0."""


class Unequal(Exception):
    """Two values that have to be equal are not."""


class NotRun(Exception):
    """A planned check cannot run here."""


class LeftOut(Exception):
    """A check is not planned here."""


_VERDICTS = {Unequal: "different", NotRun: "not run", LeftOut: "left out"}


def unavailable(device: str, reason: str) -> Exception:
    """The exception for a check that needs PyTorch's CUDA or one of NVIDIA's tools.

    The emulator does without them. On a GPU they are part of the plan.
    """
    return LeftOut(f"not run: {reason}") if device == "emulator" else NotRun(reason)


def guarded(results: Iterator[Result]) -> Iterator[Result]:
    """Results that grow; the last one is whole, and an exception is its verdict."""
    found: Result = {"verdict": "equal"}
    try:
        for result in results:
            found = {**found, **result}
            yield {**found, "partial": True}
    except Exception as error:  # the next check still runs
        found = {**found, "verdict": _VERDICTS.get(type(error), "failed"), "note": one_line(error)}
    yield found


def one_line(error: Exception) -> str:
    """An error as a cell of a table."""
    return " ".join(str(error).replace("|", "/").split()) or type(error).__name__


def is_wrong(result: Result) -> bool:
    """Whether a result counts for the exit code."""
    return result["verdict"] not in GOOD


def verdict(result: Result) -> str:
    """The mark of a result, and its note."""
    return f"{MARKS[result['verdict']]} {words(result)}".rstrip()


def words(result: Result) -> str:
    """How far a result is off, and its note."""
    is_far = result["verdict"] == "different" and isinstance(result.get("off"), float)
    off = f"off by {result['off']:.2g} of the tolerance" if is_far else ""
    return "; ".join(filter(None, (off, result.get("note", ""))))


def told(result: Result) -> str:
    """A result as a line of the terminal; it begins with ✗ where it counts for the exit code."""
    mark = "✗ " if is_wrong(result) else ""
    return f"{mark}{result['name']}: {'; '.join(filter(None, (result['verdict'], words(result))))}"


def finite(value: Any) -> Any:
    """A value of JSON, in which a number that JSON lacks is text: `nan`, `inf` or `-inf`."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value
