"""Fetches the models that INDEX.json names by their addresses into the cache."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from compiler.errors import Error
from compiler.zoo.download import cache_folder
from compiler.zoo.index import read_index
from compiler.zoo.select import selected
from compiler.zoo.transfer import transfer
from compiler.zoo.unpack import unpack

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from compiler.zoo.download import Download
    from compiler.zoo.index import Entry

__all__ = ["Arrival", "Fetched", "fetch"]


class Arrival(Protocol):
    """A reader of the progress of a model's download."""

    def bytes(self, name: str, size: int, total: int | None) -> None:
        """So many bytes have arrived, of a total that the server may not say."""

    def wait(self, name: str) -> None:
        """Another process downloads the same file: this one waits."""


class Silent:
    """No report of progress."""

    def bytes(self, name: str, size: int, total: int | None) -> None:
        """Do nothing."""

    def wait(self, name: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Fetched:
    """The state of a model after a fetch.

    `local`: the folder has the model. `known`: the cache had it. `new`: it was downloaded. `failed`: `problem` says
    why, and what to do. `path` is the place of the model.
    """

    name: str
    state: Literal["local", "known", "new", "failed"]
    path: Path
    license: str = ""
    problem: str = ""


def fetch(
    folder: str | os.PathLike[str],
    *,
    only: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    offline: bool = False,
    arrival: Arrival | None = None,
) -> list[Fetched]:
    """Download the models of a folder that its INDEX.json names by `url`, except those in the cache.

    A file enters the cache only if its SHA-256 is that in INDEX.json. Two processes may fetch the same models. With
    `offline`, a model that needs the network fails. `only` selects models as the option of `candlec zoo run` does.

    Raises:
        OSError: there is no such folder or index, or the cache cannot be written.
        ValueError: the index is invalid, a selection selects no model, or there is no place for a cache.
    """
    place = cache_folder(None if cache is None else Path(cache))
    entries = selected(read_index(Path(folder), place), only)
    made = [_fetched(entry, offline, arrival or Silent()) for entry in entries]
    now = {entry.name: entry for entry in read_index(Path(folder), place)}
    return [_with_files(each, now[each.name]) for each in made]


def _fetched(entry: Entry, offline: bool, arrival: Arrival) -> Fetched:
    download = entry.download
    if download is None:
        return Fetched(entry.name, "local", entry.path)
    if download.is_fetched:
        return Fetched(entry.name, "known", entry.path, download.license)
    try:
        _check(download, offline)
        with _alone(download, entry.name, arrival):
            if not download.is_fetched:  # another process may have fetched it
                _download(download, entry.name, arrival)
    except Error as error:
        return Fetched(entry.name, "failed", entry.path, download.license, str(error))
    return Fetched(entry.name, "new", entry.path, download.license)


def _check(download: Download, offline: bool) -> None:
    """Refuse a download without a license, and one that needs the network if there is none."""
    if not download.license:
        raise Error('INDEX.json names no license for it: add `"license": "…"`, for example "MIT" or "Apache-2.0"')
    if offline and not download.url.startswith("file:"):
        advice = f"leave out --offline, or copy {download.folder} from the cache of another machine"
        raise Error(f"it is not in the cache, and --offline forbids a download: {advice}")


@contextmanager
def _alone(download: Download, name: str, arrival: Arrival) -> Iterator[None]:
    """Let one process at a time fetch a file. The system ends the lock with the process."""
    download.cache.mkdir(parents=True, exist_ok=True)
    with (download.cache / f"{download.sha256}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            arrival.wait(name)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(download: Download, name: str, arrival: Arrival) -> None:
    """Download a file, verify it, and move it or the files of the archive to their place."""
    for left in download.cache.glob(f"{download.sha256}.*/"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    part, found = download.partial, ""
    for _ in range(2):
        is_continued = transfer(download.url, part, lambda size, total: arrival.bytes(name, size, total))
        if (found := _sha256(part)) == download.sha256:
            break
        part.unlink()
        if not is_continued:  # the first bytes may have been those of another file
            break
    if found != download.sha256:
        said = f"the file at {download.url} has the SHA-256 {found}, but INDEX.json has {download.sha256}"
        raise Error(f"{said}: if you trust the new file, correct `sha256`; otherwise name another `url`")
    _place(download)


def _place(download: Download) -> None:
    """Move a verified file, or the files of the archive, into the folder of the download, all at once."""
    unpacked = Path(tempfile.mkdtemp(prefix=f"{download.sha256}.", dir=download.cache))
    try:
        unpacked.chmod(0o755)
        if download.is_archive:
            try:
                unpack(download.partial, unpacked)
            except Error as error:
                raise Error(f"cannot unpack {download.url}: {error}") from error
            download.partial.unlink()
        else:
            download.partial.replace(unpacked / download.name)
        unpacked.rename(download.folder)
    except BaseException:
        shutil.rmtree(unpacked, ignore_errors=True)
        raise


def _with_files(made: Fetched, entry: Entry) -> Fetched:
    """The state of a model, which is `failed` if its download lacks the model or its cases."""
    if made.state in ("local", "failed"):
        return made
    problem = ""
    if not entry.path.exists():
        problem = f"{entry.path} is not in the download: correct `file` in INDEX.json"
    elif not entry.cases:
        problem = "the download has no test_data_set_* next to the model: add `cases` to INDEX.json"
    return Fetched(made.name, "failed" if problem else made.state, entry.path, made.license, problem)


def _sha256(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            made.update(chunk)
    return made.hexdigest()
