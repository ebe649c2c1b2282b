"""The manifest of an output: which plan and data it is of, and the parts that are finished.

`_manifest.jsonl` begins with a line about the plan, the data and the settings. Each finished part adds a line. A part
has its name before its line is written, so an interrupted run loses only parts without a line. The next run writes
these again, under the same names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from compiler.atomic_files import write_whole
from compiler.errors import Error

__all__ = ["BAD_ROWS", "MANIFEST", "Manifest", "Part", "opened"]

MANIFEST, BAD_ROWS = "_manifest.jsonl", "_bad_rows.jsonl"
"""Readers of folders of Parquet files skip files whose names begin with an underscore."""

VERSION = 1
_CHANGED = {
    "plan": "the plan is another one",
    "custom": "the code of --custom is different",
}
"""Parts of a run's identity, and the sentences that say that they have changed."""
_LEFT_OVER = re.compile(r"\.[0-9a-f]{16}\.part")
"""The names of temporary files of `write_whole`."""


@dataclass(frozen=True)
class Part:
    """A finished part, of the rows from `first` to the one before `end`.

    `rows` and `bad` count the rows in it and the bad ones. `size` is the size of its file in bytes, and `bad_size` that
    of the file of bad rows up to those of this part.
    """

    name: str
    first: int
    end: int
    rows: int
    bad: int
    size: int
    bad_size: int


class Manifest:
    """The manifest of a folder. No other process writes to the folder meanwhile."""

    def __init__(self, folder: Path, file: IO[bytes], parts: list[Part]) -> None:
        self._folder, self._file, self.parts = folder, file, parts

    @property
    def end(self) -> int:
        """The number of the first row without a part."""
        return self.parts[-1].end if self.parts else 0

    def add(self, data: bytes, suffix: str, end: int, rows: int, bad: Sequence[Mapping[str, Any]]) -> Part:
        """Write a part with its rows, and the bad rows up to the one before `end`.

        Raises:
            OSError: a file cannot be written.
        """
        name = f"part-{len(self.parts):06}{suffix}"
        write_whole(self._folder / name, data)
        size = self._add_bad(bad)
        part = Part(name, self.end, end, rows, len(bad), len(data), size)
        _write(self._file, asdict(part))
        self.parts.append(part)
        return part

    def _add_bad(self, bad: Sequence[Mapping[str, Any]]) -> int:
        """Write the bad rows behind those of the finished parts, and return the size of the file."""
        size = self.parts[-1].bad_size if self.parts else 0
        path = self._folder / BAD_ROWS
        if not bad and not path.exists():
            return size
        with path.open("r+b" if path.exists() else "xb") as file:
            file.seek(size)
            file.truncate()
            for row in bad:
                _write(file, row, sync=False)
            return file.tell()


@contextlib.contextmanager
def opened(folder: Path, identity: Mapping[str, Any], resume: bool) -> Iterator[Manifest]:
    """The manifest of a folder for a run of a plan on data: a new one, or with `resume` the one in the folder.

    Raises:
        Error: the folder has files and `resume` is not given, or it is of another run, or another process uses it.
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    if any(folder.iterdir()) and not (resume and path.exists()):
        advice = f"it has no {MANIFEST}: name a new folder" if resume else "name a new folder, or resume (--resume)"
        raise Error(f"{folder} is not empty: {advice}")
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"{folder}: another process writes to it") from None
        file.seek(0)
        lines = file.read().split(b"\n")[:-1]  # an interrupted run may leave a part of a line
        file.truncate(sum(len(line) + 1 for line in lines))
        if lines:
            _check(folder, _read(path, lines[0]), dict(identity))
        else:
            _write(file, {"version": VERSION, **identity})
        parts = [_part(path, line) for line in lines[1:]]
        for part in parts:
            _check_part(folder, part)
        for left in folder.iterdir():
            if _LEFT_OVER.fullmatch(left.name):
                left.unlink()
        yield Manifest(folder, file, parts)


def _write(file: IO[bytes], data: Mapping[str, Any], *, sync: bool = True) -> None:
    file.write(json.dumps(data).encode() + b"\n")
    if sync:
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Error(f"{path} is damaged: name a new folder")
    return found


def _part(path: Path, line: bytes) -> Part:
    try:
        return Part(**_read(path, line))
    except TypeError:
        raise Error(f"{path} is damaged: name a new folder") from None


def _check(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to continue a run of something else."""
    if found.get("version") != VERSION:
        raise Error(f"{folder}: another version of the compiler wrote it: name a new folder")
    for what, value in wanted.items():
        if found.get(what) != value:
            changed = f"{what} differs"
            if what == "files":
                before = {each["file"]: each for each in found.get("files", [])}
                now = {each["file"]: each for each in value}
                names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
                changed = f"the data differ: {names[0] if names else 'their order'}"
            elif what == "settings":
                changed = f"the settings differ: {_changes(found.get(what), value)}"
            elif what in _CHANGED:
                changed = _CHANGED[what]
            raise Error(f"{folder} has parts of another run, so it cannot continue: {changed}")


def _changes(before: Any, now: Mapping[str, Any]) -> str:
    """The settings that have changed, with both values."""
    known = before if isinstance(before, dict) else {}
    changed = [name for name in {**known, **now} if known.get(name) != now.get(name)]
    return ", ".join(
        f"{name} was {json.dumps(known.get(name))}, and is {json.dumps(now.get(name))}" for name in changed
    )


def _check_part(folder: Path, part: Part) -> None:
    path = folder / part.name
    if Path(part.name).name != part.name or not path.is_file() or path.stat().st_size != part.size:
        raise Error(f"{path} is missing, or is not the file that {MANIFEST} lists: name a new folder")
