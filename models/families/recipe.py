"""A recipe: the call that builds a network, its arguments, and the sizes of two sets of inputs."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from models.groups import file_of

__all__ = ["Argument", "Call", "Exporter", "Recipe", "call", "floats", "mask", "tokens"]

Exporter = Literal["dynamo", "torchscript"]
"""PyTorch's exporters. The older one, `"torchscript"`, records a run of the network with the first inputs."""


@dataclass(frozen=True)
class Call:
    """A call of a function or class by its full name. Its text is the expression in Python."""

    function: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [*map(_text, self.positional), *(f"{name}={_text(value)}" for name, value in self.named.items())]
        return f"{self.function}({', '.join(words)})"

    def result(self) -> Any:
        """Make the call, and those that are its arguments.

        Raises:
            ModuleNotFoundError: a package is not installed.
        """
        module, _, name = self.function.rpartition(".")
        function = getattr(importlib.import_module(module), name)
        return function(*map(_value, self.positional), **{name: _value(value) for name, value in self.named.items()})


def call(function: str, *positional: Any, **named: Any) -> Call:
    """The call of a function with these arguments."""
    return Call(function, positional, named)


@dataclass(frozen=True)
class Argument:
    """A tensor: its shape, with a name for each size that may vary, and the values of its elements."""

    shape: tuple[int | str, ...]
    kind: Literal["floats", "tokens", "mask"] = "floats"
    below: int = 0
    """The number that all tokens are below."""
    first: tuple[int, ...] = ()
    """The tokens that each row begins with."""

    def sizes(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with values in place of the names."""
        return tuple(values[size] if isinstance(size, str) else size for size in self.shape)

    @property
    def dynamic(self) -> dict[int, str]:
        """The names of the sizes that may vary, by axis."""
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


def floats(*shape: int | str) -> Argument:
    """Normal noise."""
    return Argument(shape)


def mask(*shape: int | str) -> Argument:
    """A mask of padding. Each row begins with at least one 1, and zeros follow."""
    return Argument(shape, "mask")


def tokens(below: int, *shape: int | str, first: tuple[int, ...] = ()) -> Argument:
    """Tokens of a vocabulary of this size, without the first three, which often have a meaning of their own.

    Each row begins with the tokens `first`.
    """
    return Argument(shape, "tokens", below, first)


@dataclass(frozen=True)
class Recipe:
    """A model of a family: how to build, to call and to export it.

    `arguments` are those of the network's `forward`: descriptions of tensors, and constants. `sizes` holds the sizes of
    two sets of inputs.
    """

    name: str
    network: Call
    arguments: Mapping[str, Any]
    sizes: tuple[Mapping[str, int], Mapping[str, int]]
    tags: tuple[str, ...] = ()
    exporter: Exporter = "dynamo"
    opset: int | None = None
    """The opset. `None` for the exporter's own."""

    @property
    def library(self) -> str:
        """The package that defines the network, which is the first word of the name."""
        return self.name.partition("_")[0]

    @property
    def key(self) -> str:
        """A digest of everything that the export depends on: the recipe, its code, and the versions of the packages."""
        versions = [f"{name} {_version(name)}" for name in ("torch", "onnxscript", self.library)]
        whole = f"{self.network}\n{dict(self.arguments)}\n{self.sizes}\n{self.exporter} {self.opset}\n{versions}\n"
        whole += f"{_code()}{_own(self.network)}"
        return hashlib.sha256(whole.encode()).hexdigest()[:8]

    @property
    def tensors(self) -> dict[str, Argument]:
        """The arguments that are tensors."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, Argument)}


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Call) else repr(value)


def _value(value: Any) -> Any:
    return value.result() if isinstance(value, Call) else value


@functools.cache
def _code() -> str:
    """A digest of the code that builds, seeds and exports networks."""
    folder = Path(__file__).parent
    own = (folder / f"{name}.py" for name in ("exporting", "tiny", "wrapped"))
    files = [folder.parent / "weights.py", *own]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _own(network: Call) -> str:
    """The text of the project's file that defines a network; empty if `_code` or the version of a package covers it."""
    module = network.function.rpartition(".")[0]
    is_own = module.startswith("models.") and module not in ("models.families.tiny", "models.families.wrapped")
    return file_of(module).read_text(encoding="utf-8") if is_own else ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"
