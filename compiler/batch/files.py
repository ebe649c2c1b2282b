"""The files of the data: the files that a path names, their present state, and their sources."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from compiler.batch.images import Image, Images
from compiler.batch.rows import Array, Chunk, Reading, Source
from compiler.errors import Error

__all__ = ["Data", "files_of", "format_of"]

IMAGES = (".png", ".jpg", ".jpeg")
STORED = (".npz", ".safetensors")
SUFFIXES = (".parquet", *STORED, *IMAGES)


def files_of(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths, folders and patterns such as `data/*.parquet` name. Those of a folder are in order.

    Raises:
        Error: a path names no file, a file of an unknown kind, or a file that another path names too.
        OSError: a folder cannot be read.
    """
    found: list[Path] = []
    for given in paths:
        path, text = Path(given), os.fspath(given)
        if path.is_dir():
            more = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES and each.is_file())
        elif path.exists():
            more = [path]
        else:
            more = [Path(each) for each in sorted(glob.glob(text, recursive=True)) if Path(each).is_file()]  # noqa: PTH207
        if not more:
            raise Error(f"{text}: {_lack(path) if path.is_dir() else 'there is no such file'}")
        found += more
    for path in found:
        if path.suffix.lower() not in SUFFIXES:
            raise Error(f"{path}: files of data end with {', '.join(SUFFIXES)}")
    if len({os.path.realpath(path) for path in found}) < len(found):
        raise Error("the data name a file twice")
    return found


def _lack(folder: Path) -> str:
    """The error of a folder without data files. If its subfolders have data files, it names their pattern."""
    inside = next((each for each in folder.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file()), None)
    advice = f"; for those in its folders, give the pattern '{folder}/**/*{inside.suffix}'" if inside else ""
    return f"the folder has no files of data ({', '.join(SUFFIXES)}){advice}"


def format_of(files: Sequence[Path]) -> str:
    """The format of the parts for such data."""
    return "npz" if all(path.suffix.lower() in STORED for path in files) else "parquet"


class Data:
    """The rows of all files, one after the other, with numbers from 0."""

    def __init__(self, files: Sequence[Path], reading: Reading) -> None:
        self.files = list(files)
        self.identity = [_identity(path) for path in files]
        self._sources = list(_sources(files, reading))
        self._firsts = [0, *accumulate(source.count for source in self._sources)]
        self.count = self._firsts[-1]

    def read(self, first: int) -> Iterator[Chunk]:
        """The rows from `first` on."""
        for at in range(max(bisect_right(self._firsts, first) - 1, 0), len(self._sources)):
            begin = self._firsts[at]
            for chunk in self._sources[at].read(max(first - begin, 0)):
                bad = {begin + row: reason for row, reason in chunk.bad.items()}
                yield Chunk(chunk.rows + begin, chunk.arrays, bad)

    def places(self, rows: Array) -> tuple[list[str], Array, Array]:
        """Where rows are: some files, the position of each row's file in them, and its number in the file."""
        firsts = np.asarray(self._firsts)
        owners = np.searchsorted(firsts, rows, side="right") - 1
        used, positions = np.unique(owners, return_inverse=True)
        return [os.fsencode(self.files[at]).decode(errors="replace") for at in used], positions, rows - firsts[owners]

    def place(self, row: int) -> dict[str, Any]:
        """The file of a row, and its number in the file."""
        at = bisect_right(self._firsts, row) - 1
        return {"file": str(self.files[at]), "row": row - self._firsts[at]}


def _sources(files: Sequence[Path], reading: Reading) -> Iterator[Source]:
    images: Images | None = None
    for path in files:
        match path.suffix.lower():
            case ".parquet":
                from compiler.batch.parquet import Parquet

                yield Parquet(path, reading)
            case ".npz" | ".safetensors":
                from compiler.batch import stored

                yield stored.Npz(path, reading) if path.suffix.lower() == ".npz" else stored.Safetensors(path, reading)
            case _:
                images = images or Images(reading)
                yield Image(path, images)


def _identity(path: Path) -> dict[str, Any]:
    """The file's name, size and time of its last change."""
    found = path.stat()
    return {"file": str(path), "size": found.st_size, "mtime_ns": found.st_mtime_ns}
