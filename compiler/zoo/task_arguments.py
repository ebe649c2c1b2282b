"""The arguments of the tasks on the models of a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from compiler.bench.effort import Effort
from compiler.zoo.compile_options import Compiling
from compiler.zoo.index import Entry
from compiler.zoo.outcome import SHAPES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from compiler import Options
    from compiler.bench.engines import Case
    from compiler.zoo.outcome import Shapes

__all__ = ["Asked", "Bench", "Check", "Measure", "OwnCase", "Profile", "Time"]


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


class OwnCase(Protocol):
    """A case that is not in a folder of models."""

    @property
    def what(self) -> str:
        """Its inputs in words, without the files."""

    def opened(self, options: Options) -> AbstractContextManager[Case]:
        """The compiled case."""


@dataclass(frozen=True)
class Bench:
    """A model to time beside other engines, as `candlec bench` does.

    `engines` are the names of the other engines, each with its version. Without an `own` case, the case is the first of
    the entry.
    """

    entry: Entry
    engines: tuple[tuple[str, str], ...]
    effort: Effort = field(default_factory=Effort)
    device: str = "cpu"
    compiling: Compiling = field(default_factory=Compiling)
    own: OwnCase | None = None

    @property
    def what(self) -> str:
        """The task, the effort, the device, the engines with their versions, and the inputs if they are the user's."""
        beside = " and ".join(f"{name} {version}" for name, version in self.engines)
        inputs = "" if self.own is None else f", {self.own.what}"
        return f"{_BENCH}{self.effort}, {self.device}, beside {beside or 'nothing'}{inputs}"

    @staticmethod
    def is_named(what: str) -> bool:
        """Whether a task whose `what` is this text is one of these."""
        return what.startswith(_BENCH)


_BENCH = "bench, "
