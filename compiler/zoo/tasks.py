"""The tasks of the commands on a folder of models, and what each of them gets.

This module imports little, because the process that starts the tasks imports it. The process of a task imports the
compiler and onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.processes.child import Report
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Shapes

__all__ = ["MODULES", "Check", "Measure", "check", "measure"]

MODULES = ("compiler.zoo.check", "compiler.zoo.measure")
"""The modules that tasks import. They start no threads, unlike onnxruntime, which each process imports itself."""


@dataclass(frozen=True)
class Check:
    """A model to check, for these kinds of shapes, on a device.

    `threads` is the number of threads of the model in double precision; the variants have their own.
    """

    entry: Entry
    shapes: tuple[Shapes, ...]
    device: str = "cpu"
    threads: int | None = None

    @property
    def what(self) -> str:
        """The task and its options: everything except the files that decides the result."""
        return f"check, {' and '.join(self.shapes)}, {self.device}"


@dataclass(frozen=True)
class Measure:
    """A model whose rounding errors to measure. Its sessions have this number of threads."""

    entry: Entry
    threads: int | None = None

    @property
    def what(self) -> str:
        """The task."""
        return "precision"


def check(asked: Check, report: Report) -> None:
    """See `compiler.zoo.check.check`."""
    from compiler.zoo.check import check

    check(asked, report)


def measure(asked: Measure, report: Report) -> dict[str, Any] | None:
    """See `compiler.zoo.measure.measure`."""
    from compiler.zoo.measure import measure

    return measure(asked, report)
