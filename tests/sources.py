"""The files of this repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

BUILT = {"target", "build", ".venv", "__pycache__"}
"""The names of folders with files that a build or an installation writes."""


def files(folder: Path) -> Iterator[Path]:
    """The files in a folder and its subfolders. Skips `BUILT`, whose files another process may be writing."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - BUILT)
        yield from (Path(parent, name) for name in sorted(names))
