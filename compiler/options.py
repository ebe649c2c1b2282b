"""What a caller can choose about a compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.passes.report import Report

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Options of a compilation."""

    optimize: bool = True
    """Whether to run the passes that only make the plan faster."""
    passes: Sequence[str] | None = None
    """The names of the optional passes to run, instead of all; those needed for correctness always run."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Numbers for symbolic dimensions of the inputs: `{"batch": 1}`."""
    max_memory: int | None = None
    """The most bytes that the values of a run may hold at once, beside the constants: a step that needs more is a
    `RunError`. For models that are not trusted."""
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
        if self.max_memory is not None and self.max_memory < 0:
            raise ValueError(f"max_memory is {self.max_memory}")
