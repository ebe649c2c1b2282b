"""What is said of one thing that is checked: in JSON between processes, with a mark on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Result = dict[str, Any]
"""The `number` and `name` of what was checked, its `verdict`, a `note`, and what its section shows beside them."""

MARKS = {
    "equal": "✓",
    "near": "≈",
    "left out": "–",
    "different": "✗",
    "failed": "✗",
    "not run": "✗ not run:",
    "refused": "✗",
}
"""The verdicts, and how the page says them."""
GOOD = ("equal", "near", "left out")
"""Those that leave the exit code 0."""


class Unequal(Exception):
    """What was seen is not what it should be."""


class NotRun(Exception):
    """Something was planned and cannot run here."""


class LeftOut(Exception):
    """Something is not planned here, for this reason."""


_VERDICTS = {Unequal: "different", NotRun: "not run", LeftOut: "left out"}


def result_of(work: Callable[[], Result]) -> Result:
    """What some work gives, or what it raises, as a result."""
    try:
        return {"verdict": "equal", **work()}
    except Exception as error:
        return {"verdict": _VERDICTS.get(type(error), "failed"), "note": one_line(error)}


def one_line(error: Exception) -> str:
    """An error as a cell of a table."""
    return " ".join(str(error).replace("|", "/").split()) or type(error).__name__
