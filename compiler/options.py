"""What a caller can choose about a compilation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import SupportsIndex

from compiler.rewrite.report import Report
from compiler.validate import LARGEST

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Options of a compilation."""

    optimize: bool = True
    """Whether to run the passes that only make the plan faster."""
    passes: Sequence[str] | None = None
    """The names of the optional passes to run, instead of all; those needed for correctness always run."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes for symbolic dimensions of the inputs: `{"batch": 1}`."""
    max_memory: int | None = None
    """The most bytes that the values of a run may hold at once, beside the constants: a step that needs more is a
    `RunError`. For models that are not trusted; `docs/plan-format.md` says what counts."""
    keep_metadata: Sequence[str] = ()
    """The keys of the model's own metadata that the plan keeps, such as the names of classes. By default it keeps none:
    exporters write dates, paths and names of people there."""
    strip_origins: bool = False
    """Whether to leave module paths and source lines out of the plan."""
    verify_passes: bool = False
    """Whether to verify the graph after every pass, which finds faults of the compiler."""
    on_pass: Callable[[Report], None] | None = None
    """Called with what each pass did, as soon as it has run."""

    def __post_init__(self) -> None:
        """Check what the types promise.

        Raises:
            TypeError: a field is of another type.
            ValueError: a number is negative, or none that a size can be.
        """
        for name in ("optimize", "strip_origins", "verify_passes"):
            _check(isinstance(getattr(self, name), bool), name, "True or False", getattr(self, name))
        for name in ("passes", "keep_metadata"):
            _check_names(name, getattr(self, name))
        _check(isinstance(self.dims, Mapping), "dims", "a dict of names and sizes", self.dims)
        _check_names("dims", self.dims)
        dims = {symbol: _number(f"dims[{symbol!r}]", size) for symbol, size in self.dims.items()}
        object.__setattr__(self, "dims", dims)
        if self.max_memory is not None:
            object.__setattr__(self, "max_memory", _number("max_memory", self.max_memory))
        _check(self.on_pass is None or callable(self.on_pass), "on_pass", "a function", self.on_pass)


def _check(is_right: bool, name: str, expected: str, found: object) -> None:
    if not is_right:
        raise TypeError(f"Options: {name} is {expected}, not {found!r}")


def _check_names(name: str, found: Iterable[str] | None) -> None:
    is_list = found is None or (isinstance(found, Iterable) and not isinstance(found, str | bytes))
    _check(is_list and all(isinstance(each, str) for each in found or ()), name, "a list of names", found)


def _number(name: str, found: int) -> int:
    """A size, which NumPy's integers may give, too."""
    _check(isinstance(found, SupportsIndex) and not isinstance(found, bool), name, "a whole number", found)
    number = operator.index(found)
    if not 0 <= number < LARGEST:
        raise ValueError(f"Options: {name} is {number}, not from 0 to 10^18")
    return number
