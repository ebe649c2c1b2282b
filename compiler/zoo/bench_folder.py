"""The times of several models beside other engines, each in a process of its own, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compiler.bench.timing import Timing
from compiler.processes.child import Channel
from compiler.processes.ending import Ending
from compiler.zoo import tasks
from compiler.zoo.task_arguments import Bench
from compiler.zoo.task_runs import endings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.errors import Error
    from compiler.zoo.task_runs import TaskProgress, TaskSettings

__all__ = ["Benched", "benched", "benched_here"]


@dataclass(frozen=True)
class Benched:
    """The times of a model, as far as it was timed.

    `refusal` says why the compiler or the runtime refuses the model. `problem` says why its process ended early; empty
    for one that came to its end. `inputs` has the shapes of the inputs, if they are known.
    """

    name: str
    timings: tuple[Timing, ...]
    refusal: Error | None
    problem: str
    ending: Ending
    inputs: dict[str, list[int]]

    @classmethod
    def of(cls, asked: Bench, ending: Ending) -> Benched:
        """The result of a task."""
        from compiler.zoo.bench_model import refusal_of

        timings = tuple(map(Timing.of_stored, ending.parts))
        result = ending.result if ending.kind == "done" else {"inputs": {}, "refusal": None}
        refusal = None if result["refusal"] is None else refusal_of(result["refusal"])
        return cls(asked.entry.name, timings, refusal, ending.sentence, ending, result["inputs"])

    @property
    def is_whole(self) -> bool:
        """Whether the model has all of its times."""
        return self.refusal is None and not self.problem

    def __str__(self) -> str:
        if not self.is_whole:
            return "refused" if self.refusal is not None else _SAID.get(self.ending.kind, self.ending.kind)
        other = next((name for timing in self.timings for name in timing.compared), None)
        ratios = [timing.ratio(other) for timing in self.timings if other in timing.compared] if other else []
        return f"{' and '.join(f'{100 * ratio:.0f} %' for ratio in ratios)} of {other}'s time" if ratios else "timed"


_SAID = {"raised": "failed"}


def benched(asked: Sequence[Bench], settings: TaskSettings, progress: TaskProgress | None = None) -> list[Benched]:
    """Time models, each in a process of its own, one at a time, in the same order.

    Raises: as `endings_of`. Without other engines, onnxruntime is not necessary.
    """

    def judge(one: Bench, ending: Ending) -> tuple[bool, str]:
        made = Benched.of(one, ending)
        return made.is_whole, str(made)

    alone = replace(settings, jobs=1, fresh=True)
    endings = endings_of(tasks.bench, asked, alone, judge, progress, is_reference_needed=False)
    return [Benched.of(one, ending) for one, ending in zip(asked, endings, strict=True)]


def benched_here(asked: Bench, on_phase: Callable[[str], None] = lambda _: None) -> Benched:
    """Time a model in this process.

    Raises:
        Exception: whatever ends the task early.
    """
    parts: list[Any] = []

    def tell(kind: str, data: Any) -> None:
        if kind == "phase":
            on_phase(data)
        else:
            parts.append(data)

    result = tasks.bench(asked, Channel(tell))
    return Benched.of(asked, Ending("done", result, tuple(parts)))
