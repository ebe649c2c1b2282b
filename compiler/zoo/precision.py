"""The rounding errors of the models of a folder, and which of them are too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.zoo import tasks
from compiler.zoo.task_arguments import Measure
from compiler.zoo.task_runs import endings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.accuracy.precision import Errors
    from compiler.processes.ending import Ending
    from compiler.zoo.index import Entry
    from compiler.zoo.task_runs import TaskProgress, TaskSettings

__all__ = ["Precision", "precisions"]


@dataclass(frozen=True)
class Precision:
    """The worst errors of a model; `None` if it has none, or if they could not be measured.

    `problem` says why they are not acceptable. `ending` is how the model's process ended.
    """

    errors: Errors | None
    problem: str
    ending: Ending

    def __str__(self) -> str:
        if self.errors is not None:
            return f"ratio {self.errors.ratio:.2f}"
        return "failed" if self.problem else "not measured"


def precisions(
    entries: Sequence[Entry], at_most: float, settings: TaskSettings, progress: TaskProgress | None = None
) -> list[Precision]:
    """Measure the models, in the same order. A ratio of more than `at_most` is a problem.

    Raises: as `endings_of`.
    """
    threads = settings.threads_for(len(entries))
    asked = [Measure(entry, threads, settings.compiling) for entry in entries]

    def judge(_: Measure, ending: Ending) -> tuple[bool, str]:
        made = _precision(ending, at_most)
        return not made.problem, str(made)

    endings = endings_of(tasks.measure, asked, settings, judge, progress)
    return [_precision(each, at_most) for each in endings]


def _precision(ending: Ending, at_most: float) -> Precision:
    from compiler.accuracy.precision import Errors

    if ending.kind != "done":
        return Precision(None, ending.sentence, ending)
    errors = None if ending.result is None else Errors(**ending.result)
    if errors is None or errors.ratio <= at_most:
        return Precision(errors, "", ending)
    problem = f"its error is {errors.ratio:.2f} times onnxruntime's, more than --at-most {at_most:g}"
    return Precision(errors, problem, ending)
