"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file so that it is never seen half written: beside it first, then moved into its place.

    A symbolic link stays, and what it leads to is written. Pipes and devices are written to as they are.

    Raises:
        OSError: it cannot be written; of a file, what was there is there still. The error names `path`.
    """
    try:
        if _is_place_for_a_file(path):
            _replace(Path(os.path.realpath(path)), data)
        else:
            Path(path).write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _is_place_for_a_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file, or nothing."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except FileNotFoundError:
        return True


def _replace(target: Path, data: bytes) -> None:
    """Puts a new file in the place of `target`, with its permissions."""
    is_there = target.exists()
    if is_there and not os.access(target, os.W_OK):  # moving another into its place would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            if is_there:
                shutil.copymode(target, beside)
            file.write(data)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
