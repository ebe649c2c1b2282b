"""A model of a folder, opened so that engines can run it in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import compiler
from compiler.bench.saved import saved
from compiler.zoo.shapes import pinned

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from compiler.bench.engines import Case
    from compiler.zoo.index import Entry

__all__ = ["opened"]


def opened(entry: Entry) -> AbstractContextManager[Case]:
    """The first case of a model, compiled for the shapes of its inputs."""
    inputs = entry.inputs(entry.cases[0])
    return saved(entry.name, compiler.compile(pinned(entry.path, inputs)), inputs, entry.path)
