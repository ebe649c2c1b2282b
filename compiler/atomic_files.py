"""Writes a file completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that no reader sees a part of it: write a temporary file in its folder, then rename that file.

    For a symbolic link, the function writes the link's target. It writes directly into pipes and devices.

    Raises:
        OSError: the file cannot be written, and keeps its former content. The error names `path`.
    """
    try:
        if _is_place_for_a_file(path):
            _replace(Path(os.path.realpath(path)), data)
        else:
            Path(path).write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _is_place_for_a_file(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a regular file, or does not exist."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except FileNotFoundError:
        return True


def _replace(target: Path, data: bytes) -> None:
    """Replace `target` with a new file that has the same permissions."""
    is_there = target.exists()
    if is_there and not os.access(target, os.W_OK):  # renaming would ignore this permission
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    partial = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as file:
            if is_there:
                shutil.copymode(target, partial)
            file.write(data)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
