"""Whether a model is so large that a comparison holds only one copy of its weights at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from compiler import pipeline
from compiler.frontend.external import files_of_weights
from compiler.frontend.load import Changed

if TYPE_CHECKING:
    from compiler.frontend.load import Source

__all__ = ["is_large"]


def is_large(model: Source | Changed) -> bool:
    """Whether a model takes more than `LARGE` bytes, with the files of its weights."""
    while isinstance(model, Changed):
        model = model.source
    if isinstance(model, bytes):
        return len(model) > pipeline.LARGE
    if not isinstance(model, str | os.PathLike):
        return False
    path = Path(model)
    return sum(each.stat().st_size for each in (path, *files_of_weights(path)) if each.is_file()) > pipeline.LARGE
