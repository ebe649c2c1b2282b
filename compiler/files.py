"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file so that it is never seen half written: beside it first, then moved into its place.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    target = Path(path)
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
