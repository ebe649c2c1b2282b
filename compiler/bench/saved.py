"""A case with its plan in a temporary file, which each engine and each process loads."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.bench.engines import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler import Plan

__all__ = ["saved"]


@contextmanager
def saved(name: str, plan: Plan, inputs: dict[str, Any], model: Path | None) -> Iterator[Case]:
    """A case with its plan in a file, which exists as long as the context."""
    with tempfile.TemporaryDirectory(prefix="candlec-bench-") as folder:
        file = Path(folder) / "timed.plan"
        plan.save(file)
        del plan
        yield Case(name, file, inputs, model)
