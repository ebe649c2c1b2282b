"""The transfer of a file from an address of http, https or file, which continues after an interruption."""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from compiler.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

__all__ = ["TransferFailed", "transfer"]

_CHUNK, _SECONDS, _ATTEMPTS = 1 << 20, 30.0, 5


class TransferFailed(Error):
    """A file could not be transferred. The text says what to do."""


def transfer(url: str, path: Path, arrived: Callable[[int, int | None], None]) -> bool:
    """Write the file at an address to `path`, behind the bytes that `path` has from an earlier transfer.

    If the connection ends early, the function connects again while each connection brings new bytes, at most five
    times. It calls `arrived` with the number of bytes in `path` and the size of the whole file, if the server says it.
    Returns whether the file has bytes of an earlier transfer.

    Raises:
        OSError: `path` cannot be written.
        TransferFailed: the address cannot be reached, or the connection ended early. `path` keeps its bytes.
    """
    had = path.stat().st_size if path.exists() else 0
    is_continued = False
    for attempt in range(_ATTEMPTS):
        before = path.stat().st_size if path.exists() else 0
        kept, total = _receive(url, path, before, arrived)
        is_continued = kept and (is_continued or attempt > 0 or had > 0)
        size = path.stat().st_size
        if total is None or size >= total:
            return is_continued
        if size <= before:
            break
    advice = "the same command continues where it ended"
    raise TransferFailed(f"the connection to {_host(url)} ended after {size} of {total} bytes: {advice}")


def _receive(url: str, path: Path, start: int, arrived: Callable[[int, int | None], None]) -> tuple[bool, int | None]:
    """Receive the bytes from `start` on, until the connection ends.

    Returns whether the file keeps its first bytes, and the size of the whole file, if the server says it.
    """
    response = _open(url, start)
    if response is None:
        return True, None
    with response:
        begin, total = _part(response, path, start)
        _check_space(path, total, begin)
        with path.open("r+b" if path.exists() else "xb") as file:
            file.truncate(begin)
            file.seek(begin)
            _copy(response, file, begin, total, arrived)
        return begin > 0, total


def _open(url: str, start: int) -> Any:
    """The response of a server; `None` if it says that the file has no bytes after `start`."""
    request = urllib.request.Request(url, headers={"User-Agent": "candle-compiler"})
    if start and not url.startswith("file:"):
        request.add_header("Range", f"bytes={start}-")
    try:
        return urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return None
        advice = "correct the `url` in INDEX.json" if 400 <= error.code < 500 else "type the command again later"
        raise TransferFailed(f"{_host(url)} answers {error.code} {error.reason} for {url}: {advice}") from error
    except urllib.error.URLError as error:
        raise TransferFailed(_unreachable(url, error.reason)) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise TransferFailed(_unreachable(url, error)) from error


def _part(response: Any, path: Path, start: int) -> tuple[int, int | None]:
    """The place of the first byte that a response brings, and the size of the whole file."""
    length = response.headers.get("Content-Length", "")
    size = int(length) if length.isdecimal() else None
    if getattr(response, "status", None) != http.client.PARTIAL_CONTENT:
        return 0, size
    place, _, whole = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    if place.partition("-")[0] != str(start):
        raise TransferFailed(f"{response.url} sends other bytes than it was asked for: remove {path}, and try again")
    return start, int(whole) if whole.isdecimal() else None if size is None else start + size


def _copy(response: Any, file: Any, size: int, total: int | None, arrived: Callable[[int, int | None], None]) -> None:
    """Copy a response to a file until the connection ends."""
    arrived(size, total)
    while True:
        try:
            chunk = response.read1(_CHUNK) if hasattr(response, "read1") else response.read(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            if total is None:
                raise TransferFailed(f"the connection to {response.url} ended: type the command again") from error
            return
        if not chunk:
            return
        file.write(chunk)
        size += len(chunk)
        arrived(size, total)


def _check_space(path: Path, total: int | None, begin: int) -> None:
    """Refuse a file that does not fit the disk."""
    free = shutil.disk_usage(path.parent).free
    if total is not None and total - begin > free:
        advice = "choose another folder with --cache"
        raise TransferFailed(f"the file has {total} bytes, but {path.parent} has only {free} left: {advice}")


def _unreachable(url: str, reason: Any) -> str:
    said = getattr(reason, "strerror", None) or reason
    if url.startswith("file:"):
        return f"cannot read {url}: {said}"
    return f"cannot reach {_host(url)} ({said}): check the network, and type the command again"


def _host(url: str) -> str:
    return urlsplit(url).netloc or url
