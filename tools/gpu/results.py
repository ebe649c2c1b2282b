"""The result of one check: JSON between processes, and a mark on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

Result = dict[str, Any]
"""The `number` and `name` of a check, its `verdict`, a `note`, and the figures that its section shows.

Another result with the same number follows a `partial` result, unless its process ends early.
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
"""Verdict → its mark on the page."""
GOOD = ("equal", "near", "left out")
"""The verdicts that do not change the exit code 0."""


class Unequal(Exception):
    """Two values that must be equal differ."""


class NotRun(Exception):
    """A planned check cannot run here."""


class LeftOut(Exception):
    """A check is not planned here."""


_VERDICTS = {Unequal: "different", NotRun: "not run", LeftOut: "left out"}


def unavailable(device: str, reason: str) -> Exception:
    """The exception for a check that needs PyTorch's CUDA or one of NVIDIA's tools.

    With the emulator, the check is left out. On a GPU, a missing tool is marked ✗.
    """
    return LeftOut(f"not run: {reason}") if device == "emulator" else NotRun(reason)


def guarded(results: Iterator[Result]) -> Iterator[Result]:
    """Partial results with all fields so far, then the final result. An exception determines its verdict."""
    found: Result = {"verdict": "equal"}
    try:
        for result in results:
            found = {**found, **result}
            yield {**found, "partial": True}
    except Exception as error:  # the next check still runs
        found = {**found, "verdict": _VERDICTS.get(type(error), "failed"), "note": one_line(error)}
    yield found


def one_line(error: Exception) -> str:
    """The text of an error for a cell of a table, in one line."""
    return " ".join(str(error).replace("|", "/").split()) or type(error).__name__


def is_wrong(result: Result) -> bool:
    """Whether a result makes the exit code 1."""
    return result["verdict"] not in GOOD


def verdict(result: Result) -> str:
    """The mark of a result, and its note."""
    return f"{MARKS[result['verdict']]} {words(result)}".rstrip()


def words(result: Result) -> str:
    """A result's difference, if it is large, and its note."""
    is_far = result["verdict"] == "different" and isinstance(result.get("off"), float)
    off = f"off by {result['off']:.2g} of the tolerance" if is_far else ""
    return "; ".join(filter(None, (off, result.get("note", ""))))


def told(result: Result) -> str:
    """A result as a line for the terminal, which starts with ✗ if the result makes the exit code 1."""
    mark = "✗ " if is_wrong(result) else ""
    return f"{mark}{result['name']}: {'; '.join(filter(None, (result['verdict'], words(result))))}"


def finite(value: Any) -> Any:
    """Converts data for JSON: numbers that JSON lacks become the texts `nan`, `inf` and `-inf`."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value
