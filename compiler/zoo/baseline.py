"""A baseline: the models of a folder whose results are known to differ from onnxruntime's, with reasons and bounds.

A baseline is a TOML file with one table for each model. A table has the `reason`. For `pinned` and for `unpinned`
shapes it has the `verdict` and `at_most`, the largest difference as a multiple of the tolerance; or `refused`, the
error codes with which the compiler refuses the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit

from compiler.accuracy.compare import worst_of
from compiler.atomic_files import write_whole
from compiler.zoo.outcome import SHAPES
from compiler.zoo.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.accuracy.compare import Verdict
    from compiler.zoo.outcome import Result, Shapes

__all__ = ["Expectation", "KnownDifference", "read_baseline", "renewed", "write_baseline"]

_MOST_SLACK = 10
"""`candlec zoo update` replaces a line that allows more than this multiple of the measured difference."""


@dataclass(frozen=True)
class Expectation:
    """An expected result: the verdict and the largest multiple of the tolerance, or the codes of a refusal."""

    verdict: Verdict
    at_most: float = math.inf
    codes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"refused ({', '.join(self.codes)})" if self.codes else self.verdict

    def exceeded(self, found: Result) -> str:
        """A sentence if a result is worse than expected, or a refusal with other codes; else an empty string."""
        is_another = "refused" in (found.verdict, self.verdict) and found.codes != self.codes
        if is_another or worst_of([found.verdict, self.verdict]) != self.verdict:
            return f"it is {found}, but {self} in the baseline"
        if found.share > self.at_most:
            return f"its difference is {found.share:.3g} × the tolerance, but the baseline allows {self.at_most:g} ×"
        return ""

    def outdated(self, worst: Verdict) -> str:
        """A sentence if the worst of all results is better than expected; else an empty string."""
        is_better = worst != self.verdict and worst_of([worst, self.verdict]) == self.verdict
        return f"it is now {worst} in every variant, but {self} in the baseline" if is_better else ""

    def holds(self, worst: Result) -> bool:
        """Whether the expectation still describes the worst of all results, and its bound is not too large."""
        said = self.exceeded(worst) or self.outdated(worst.verdict)
        return not said and (bool(self.codes) or self.at_most <= _MOST_SLACK * worst.share)


@dataclass(frozen=True)
class KnownDifference:
    """The known difference of a model: the reason, and the expectation for each kind of shapes."""

    reason: str
    expectations: Mapping[Shapes, Expectation]


def read_baseline(path: Path) -> dict[str, KnownDifference]:
    """The known differences by model.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a baseline.
    """
    try:
        tables = read_toml(path)
        return {name: _known(name, table) for name, table in tables.items()}
    except ValueError as error:
        raise ValueError(f"{path} is not a baseline: {error}") from error


def write_baseline(path: Path, known: Mapping[str, KnownDifference]) -> None:
    """Write the known differences, but keep comments, the order and unchanged lines.

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


def renewed(before: KnownDifference | None, found: Mapping[Shapes, Result], remark: str) -> KnownDifference | None:
    """The new entry for a model from the worst results; `None` if the model is equal.

    The entry keeps its reason and the lines that still hold. The remark becomes the reason of a new entry.
    """
    expectations: dict[Shapes, Expectation] = {}
    for shapes, worst in found.items():
        old = before.expectations.get(shapes) if before else None
        if worst.verdict in ("uncertain", "different", "refused"):
            expectations[shapes] = old if old and old.holds(worst) else _new_expectation(worst)
    return KnownDifference(before.reason if before else remark, expectations) if expectations else None


def _new_expectation(found: Result) -> Expectation:
    return Expectation(found.verdict, math.inf if found.codes else _rounded_up(found.share), found.codes)


def _known(name: str, table: Any) -> KnownDifference:
    if not isinstance(table, dict):
        raise ValueError(f"{name} is {table!r}: write a table for each model")
    reason = table.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"the model {name} has no reason: add one")
    if unknown := table.keys() - {"reason", *SHAPES}:
        raise ValueError(f"the model {name} has {', '.join(sorted(unknown))}: use only reason, {', '.join(SHAPES)}")
    return KnownDifference(
        reason, {shapes: _expectation(f"{name}: {shapes}", table[shapes]) for shapes in SHAPES if shapes in table}
    )


def _expectation(place: str, line: Any) -> Expectation:
    if not isinstance(line, dict) or line.keys() not in ({"verdict", "at_most"}, {"refused"}):
        raise ValueError(f"{place}: expected verdict and at_most, or refused; found {line!r}")
    if "refused" in line:
        codes = line["refused"]
        if not isinstance(codes, list) or not codes or not all(isinstance(code, str) for code in codes):
            raise ValueError(f"{place}: refused must be a list of codes, not {codes!r}")
        return Expectation("refused", codes=tuple(sorted(codes)))
    verdict, at_most = line["verdict"], line["at_most"]
    if verdict not in ("uncertain", "different"):
        raise ValueError(f"{place}: the verdict must be uncertain or different, not {verdict!r}")
    if isinstance(at_most, bool) or not isinstance(at_most, int | float) or not 1 < at_most < math.inf:
        raise ValueError(f"{place}: at_most must be a number above 1, not {at_most!r}")
    return Expectation(verdict, at_most)


def _table(known: KnownDifference) -> Any:
    """The TOML table of a model."""
    table = tomlkit.table()
    table["reason"] = known.reason
    for shapes, line in known.expectations.items():
        written = tomlkit.inline_table()
        if line.codes:
            written["refused"] = list(line.codes)
        else:
            written["verdict"] = line.verdict
            written["at_most"] = int(line.at_most) if float(line.at_most).is_integer() else line.at_most
        table[shapes] = written
    return table


def _rounded_up(share: float) -> float:
    """Rounds up to 1, 2 or 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(share))
    return next(digit * unit for digit in (1, 2, 5, 10) if digit * unit >= share)
