"""Unpacks an archive of a model and its data. The archive may be malicious."""

from __future__ import annotations

import shutil
import tarfile
from typing import TYPE_CHECKING

from compiler.errors import Error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["unpack"]


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive (.tar, .tar.gz) into an empty folder. No file leaves the folder.

    Raises:
        Error: it is no such archive, it is damaged, it names a place outside, or its files do not fit the disk.
        OSError: a file cannot be written.
    """
    if not hasattr(tarfile, "data_filter"):  # the first releases of Python 3.10 and 3.11
        raise Error("this version of Python cannot unpack archives safely: install its newest release")
    try:
        with tarfile.open(archive) as opened:
            needed, free = 0, shutil.disk_usage(folder).free
            for member in opened:
                needed += member.size
                if needed > free:
                    raise Error(f"its files have more than {free} bytes, which are left in {folder.parent}")
                opened.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise Error(f"it is not a sound archive: {error}") from error
