"""The arguments of the tasks on the models of a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from compiler.zoo.compiling import Compiling
from compiler.zoo.index import Entry
from compiler.zoo.outcome import SHAPES

if TYPE_CHECKING:
    from compiler.zoo.outcome import Shapes

__all__ = ["Asked", "Check", "Measure", "Profile", "Time"]


class Asked(Protocol):
    """The argument of a task: a model, and a text that names the task and its options."""

    @property
    def entry(self) -> Entry:
        """The model."""

    @property
    def what(self) -> str:
        """The task and its options: everything that decides the result, except the files and how to compile them."""

    @property
    def compiling(self) -> Compiling:
        """The options of the compilation."""


@dataclass(frozen=True)
class Check:
    """A model to check, for these kinds of shapes, on a device.

    `threads` is the number of threads of the model in double precision; the variants have their own.
    """

    entry: Entry
    shapes: tuple[Shapes, ...]
    device: str = "cpu"
    threads: int | None = None
    compiling: Compiling = field(default_factory=Compiling)

    @property
    def what(self) -> str:
        """The task and its options: everything that decides the result, except the files and how to compile them."""
        return f"check, {' and '.join(self.shapes)}, {self.device}"

    @classmethod
    def named(cls, model: str, what: str) -> Check | None:
        """The check of a model whose `what` is this text, without its files; `None` for another task."""
        task, _, rest = what.partition(", ")
        kinds, _, device = rest.partition(", ")
        shapes = tuple(each for each in SHAPES if each in kinds.split(" and "))
        return cls(Entry(model, Path(), ()), shapes, device) if task == "check" and shapes and device else None


@dataclass(frozen=True)
class Measure:
    """A model whose rounding errors to measure. Its sessions have this number of threads."""

    entry: Entry
    threads: int | None = None
    compiling: Compiling = field(default_factory=Compiling)

    @property
    def what(self) -> str:
        """The task."""
        return "precision"


@dataclass(frozen=True)
class Time:
    """A model to time beside onnxruntime, at the level of this processor.

    `number` is the number of the process, because several processes time a model.
    """

    entry: Entry
    level: str
    number: int
    compiling: Compiling = field(default_factory=Compiling)

    @property
    def what(self) -> str:
        """The task, the level and the number of the process."""
        return f"time, {self.level}, {self.number}"

    @classmethod
    def named(cls, model: str, what: str) -> Time | None:
        """The task of a model whose `what` is this text, without its files; `None` for another task."""
        task, level, number = [*what.split(", "), "", ""][:3]
        return cls(Entry(model, Path(), ()), level, int(number)) if task == "time" and number.isdecimal() else None


@dataclass(frozen=True)
class Profile:
    """A model whose steps to time, for a kind of shapes, on a device."""

    entry: Entry
    shapes: Shapes
    device: str = "cpu"
    compiling: Compiling = field(default_factory=Compiling)

    @property
    def what(self) -> str:
        """The task, the kind of shapes and the device."""
        return f"profile, {self.shapes}, {self.device}"

    @classmethod
    def named(cls, model: str, what: str) -> Profile | None:
        """The task of a model whose `what` is this text, without its files; `None` for another task."""
        task, kind, device = [*what.split(", "), "", ""][:3]
        found = next((each for each in SHAPES if each == kind), None)
        return cls(Entry(model, Path(), ()), found, device) if task == "profile" and found and device else None
