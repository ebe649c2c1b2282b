"""The checks of a folder of models, for programs and for pytest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.processes.run import Limits
from compiler.zoo import tasks
from compiler.zoo.index import Entry, read_index
from compiler.zoo.measures_file import with_measures
from compiler.zoo.outcome import together
from compiler.zoo.outcome_judgment import judged, outcomes_of, outdated
from compiler.zoo.select import selected
from compiler.zoo.task_arguments import Check
from compiler.zoo.task_runs import TaskSettings, endings_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from compiler.processes.ending import Ending
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.facts import Facts
    from compiler.zoo.outcome import Outcome, Result, Shapes
    from compiler.zoo.task_runs import TaskProgress

__all__ = ["Case", "CaseOutcome", "cases", "check_all", "run"]


@dataclass(frozen=True)
class Case:
    """A model of a folder, for one kind of shapes, on a device. `known` is its known difference from onnxruntime."""

    entry: Entry
    shapes: Shapes = "pinned"
    device: str = "cpu"
    known: KnownDifference | None = None

    @property
    def id(self) -> str:
        """A name for reports of tests: `digits-pinned`."""
        return f"{self.entry.name}-{self.shapes}"

    def check(self, *, timeout: float | None = None, memory_limit: int | None = None) -> CaseOutcome:
        """Check the model in a process of its own, which may take so many seconds and bytes of memory.

        Raises: as `run`.
        """
        [outcome] = check_all([self], TaskSettings(jobs=1, limits=Limits(timeout, memory_limit)))
        return outcome


@dataclass(frozen=True)
class CaseOutcome:
    """The outcomes of all variants of a model, and a line of the baseline that no longer holds.

    `ending` is how the model's process ended.
    """

    case: Case
    outcomes: tuple[Outcome, ...]
    stale: str
    ending: Ending

    @property
    def ok(self) -> bool:
        """Whether every outcome is acceptable, and the line of the baseline still holds."""
        return not self.stale and not any(each.problem for each in self.outcomes)

    @property
    def message(self) -> str:
        """The problems, with the remarks on the outputs; empty if there are none."""
        lines = [line for each in self.outcomes if each.problem for line in (each.problem, *each.remarks)]
        return "\n".join(f"{self.case.id}: {line}" for line in dict.fromkeys([*lines, self.stale]) if line)

    @property
    def worst(self) -> Result:
        """The worst verdict and difference of all variants."""
        return together(self.outcomes)

    @property
    def facts(self) -> Facts | None:
        """The facts of the check; `None` if it did not come to its end."""
        from compiler.zoo.facts import facts_of_check

        shapes = self.case.shapes
        return facts_of_check(self.ending, {shapes: self.outcomes}).get(shapes)


def cases(
    folder: str | os.PathLike[str],
    *,
    shapes: Sequence[Shapes] = ("pinned",),
    only: Sequence[str] = (),
    baseline: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    cache: str | os.PathLike[str] | None = None,
    measures: str | os.PathLike[str] | None = None,
) -> list[Case]:
    """The models of a folder with an INDEX.json, for each kind of shapes, for example as parameters of a test.

    `only` selects models as the option `--only` of `candlec zoo run` does. `baseline` is the file of known differences.
    `cache` is the folder of the models that `compiler.zoo.fetch` downloads. `measures` is a file of measures, in
    addition to those of INDEX.json.

    Raises:
        OSError: there is no such folder, index, baseline or file of measures.
        ValueError: one of these is invalid, or a selection selects no model.
    """
    entries = selected(read_index(Path(folder), None if cache is None else Path(cache)), only)
    entries = with_measures(entries, None if measures is None else Path(measures), only)
    known: dict[str, KnownDifference] = {}
    if baseline is not None:
        from compiler.zoo.baseline import read_baseline

        known = read_baseline(Path(baseline))
    return [Case(entry, each, device, known.get(entry.name)) for each in shapes for entry in entries]


def run(
    folder: str | os.PathLike[str],
    *,
    shapes: Sequence[Shapes] = ("pinned",),
    only: Sequence[str] = (),
    baseline: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    timeout: float | None = None,
    memory_limit: int | None = None,
    results: str | os.PathLike[str] | None = None,
    resume: bool = False,
    cache: str | os.PathLike[str] | None = None,
    measures: str | os.PathLike[str] | None = None,
) -> list[CaseOutcome]:
    """Check the models of a folder as `candlec zoo run` does, each in a process of its own, at most `jobs` at a time.

    The outcomes have the order of `cases`. A model that takes more than `timeout` seconds or `memory_limit` bytes, or
    that crashes, has an outcome that says so. `results` is a file that gets a line of JSON for each model as soon as it
    is done. With `resume`, models whose results are in this file are not checked again, unless something has changed.
    `cache` is the folder of the models that `compiler.zoo.fetch` downloads, and `measures` a file of measures.

    The processes import the program's main module, so a program must call this function below
    `if __name__ == "__main__":`.

    Raises:
        DeviceError: the device cannot be used.
        OSError: a file cannot be read or written.
        ReferenceMissing: onnxruntime is not installed.
        ValueError: the index, the baseline or the file of results is invalid, or a selection selects no model.
    """
    chosen = cases(folder, shapes=shapes, only=only, baseline=baseline, device=device, cache=cache, measures=measures)
    file = None if results is None else Path(results)
    return check_all(chosen, TaskSettings(jobs, Limits(timeout, memory_limit), file, resume))


def check_all(
    chosen: Sequence[Case], settings: TaskSettings, progress: TaskProgress | None = None
) -> list[CaseOutcome]:
    """The outcomes of cases, in the same order. All of them have the same device.

    One process checks all cases of a model, so that onnxruntime computes each set of inputs once.

    Raises: as `run`.
    """
    device = chosen[0].device if chosen else "cpu"
    grouped: dict[Entry, list[Case]] = {}
    for each in chosen:
        grouped.setdefault(each.entry, []).append(each)
    threads = settings.threads_for(len(grouped), device)
    asked = {
        Check(entry, tuple(each.shapes for each in group), device, threads, settings.compiling): group
        for entry, group in grouped.items()
    }

    def judge(one: Check, ending: Ending) -> tuple[bool, str]:
        found = [_outcome(case, one, ending) for case in asked[one]]
        return all(each.ok for each in found), str(together([outcome for each in found for outcome in each.outcomes]))

    endings = zip(asked.items(), endings_of(tasks.check, list(asked), settings, judge, progress, device), strict=True)
    made = [_outcome(case, one, ending) for (one, group), ending in endings for case in group]
    found = {(each.case.entry, each.case.shapes): each for each in made}
    return [found[each.entry, each.shapes] for each in chosen]


def _outcome(case: Case, asked: Check, ending: Ending) -> CaseOutcome:
    """The judgment on the ending of a check."""
    line = case.known.expectations.get(case.shapes) if case.known else None
    outcomes = tuple(judged(each, case.entry, line) for each in outcomes_of(asked, ending)[case.shapes])
    return CaseOutcome(case, outcomes, outdated(outcomes, line), ending)
