"""A baseline: the models of a folder that are known not to equal onnxruntime's results, why, and how far off they are.

A TOML file, a table a model: the `reason`, and for the shapes with which it is not equal, `pinned` or `unpinned` ones,
the `verdict` and `at_most`, how many times what is allowed the worst difference may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tomlkit

from compiler.compare import worst_of
from compiler.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.compare import Verdict

__all__ = ["SHAPES", "Known", "Line", "Shapes", "read_baseline", "renewed", "write_baseline"]

Shapes = Literal["pinned", "unpinned"]
SHAPES: tuple[Shapes, ...] = ("pinned", "unpinned")
"""How the shapes of a model's inputs are compiled: pinned to those of a case, or with symbolic dims."""

_MOST_ROOM = 10
"""A line that allows more than so many times what there is is written anew."""


@dataclass(frozen=True)
class Line:
    """What is expected: the verdict, and the largest difference in times of what is allowed."""

    verdict: Verdict
    at_most: float = math.inf

    def exceeded(self, verdict: Verdict, share: float) -> str:
        """In what a result is worse than expected; empty where it is not."""
        if worst_of([verdict, self.verdict]) != self.verdict:
            return f"it is {verdict}, and {self.verdict} in the baseline"
        if share > self.at_most:
            return f"it is {share:.3g} times the tolerance off, and the baseline allows {self.at_most:g} times"
        return ""

    def outdated(self, worst: Verdict) -> str:
        """Whether the worst of all results is better than expected."""
        is_better = worst != self.verdict and worst_of([worst, self.verdict]) == self.verdict
        return f"it is {worst} in every way now, and {self.verdict} in the baseline" if is_better else ""

    def holds(self, worst: Verdict, share: float) -> bool:
        """Whether it tells of the worst of all results, with no more room than it needs."""
        said = self.exceeded(worst, share) or self.outdated(worst)
        return not said and self.at_most <= _MOST_ROOM * share


@dataclass(frozen=True)
class Known:
    """What is known of a model: why it is not equal, and a line for the shapes with which it is not."""

    reason: str
    lines: Mapping[Shapes, Line]


def read_baseline(path: Path) -> dict[str, Known]:
    """What is known, by model.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a baseline.
    """
    try:
        tables = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
        return {name: _known(table) for name, table in tables.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a baseline: {error}") from error


def write_baseline(path: Path, known: Mapping[str, Known]) -> None:
    """Write what is known; comments, the order and all that is as it was stay.

    Raises:
        OSError: the file cannot be written.
    """
    there = path.exists()
    before = read_baseline(path) if there else {}
    document = tomlkit.parse(path.read_text(encoding="utf-8")) if there else tomlkit.document()
    for name in before.keys() - known.keys():
        del document[name]
    for name, each in known.items():
        if before.get(name) != each:
            document[name] = _table(each)
    write_whole(path, tomlkit.dumps(document).encode())


def renewed(before: Known | None, found: Mapping[Shapes, tuple[Verdict, float]], remark: str) -> Known | None:
    """What is known of a model, of which the worst verdicts and shares were found; none where it is equal.

    The reason that was written stays; without one, it is what was remarked. So do lines that hold.
    """
    lines: dict[Shapes, Line] = {}
    for shapes, (verdict, share) in found.items():
        old = before.lines.get(shapes) if before else None
        if verdict in ("uncertain", "different"):
            lines[shapes] = old if old and old.holds(verdict, share) else Line(verdict, _rounded_up(share))
    return Known(before.reason if before else remark, lines) if lines else None


def _known(table: Mapping[str, Any]) -> Known:
    reason = table["reason"]
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("a model has no reason")
    if unknown := table.keys() - {"reason", *SHAPES}:
        raise ValueError(f"a model has {', '.join(sorted(unknown))}, and may have reason, {', '.join(SHAPES)}")
    return Known(reason, {shapes: _line(**table[shapes]) for shapes in SHAPES if shapes in table})


def _line(verdict: Verdict, at_most: float = math.inf) -> Line:
    if verdict not in ("uncertain", "different"):
        raise ValueError(f"a verdict is uncertain or different, not {verdict!r}")
    if isinstance(at_most, bool) or not isinstance(at_most, int | float) or not at_most > 1:
        raise ValueError(f"at_most is a number above 1, not {at_most!r}")
    return Line(verdict, at_most)


def _table(known: Known) -> Any:
    """The table of a model, a line of text for each of its lines."""
    table = tomlkit.table()
    table["reason"] = known.reason
    for shapes, line in known.lines.items():
        written = tomlkit.inline_table()
        written["verdict"] = line.verdict
        if line.at_most < math.inf:
            written["at_most"] = int(line.at_most) if float(line.at_most).is_integer() else line.at_most
        table[shapes] = written
    return table


def _rounded_up(share: float) -> float:
    """To 1, 2 or 5 times a power of ten."""
    if not math.isfinite(share):
        return math.inf
    unit = 10.0 ** math.floor(math.log10(share))
    return next(digit * unit for digit in (1, 2, 5, 10) if digit * unit >= share)
