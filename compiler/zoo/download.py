"""The download that an entry of INDEX.json names, and its place in the cache."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CACHE", "Download", "cache_folder"]

CACHE = "CANDLE_ZOO_CACHE"
"""The environment variable that names the cache."""

_SCHEMES = ("https", "http", "file")
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class Download:
    """A file at an address, or an archive of files.

    `sha256` is the digest of the file at the address, as 64 hexadecimal digits. `license` may be empty.
    """

    url: str
    sha256: str
    license: str
    cache: Path

    @classmethod
    def of(cls, data: Mapping[str, Any], cache: Path) -> Download | None:
        """The download of an entry; `None` if the entry has no `url`.

        Raises:
            ValueError: the address, the digest or the license is invalid.
        """
        url, digest, license = (data.get(key, "") for key in ("url", "sha256", "license"))
        if "url" not in data:
            return None
        if not isinstance(url, str) or urlsplit(url).scheme not in _SCHEMES:
            raise ValueError(f"has the url {url!r}, not an address that begins with https, http or file")
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-fA-F]{64}", digest):
            raise ValueError("has a url without its sha256, 64 hexadecimal digits: `sha256sum FILE` prints them")
        if not isinstance(license, str):
            raise ValueError(f"has the license {license!r}, not a string")
        made = cls(url, digest.lower(), license, cache)
        if made.name in ("", ".", ".."):
            raise ValueError(f"has the url {url!r}, which does not end with the name of a file")
        return made

    @property
    def name(self) -> str:
        """The name of the file, from the end of the address."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def is_archive(self) -> bool:
        """Whether the file is an archive by its name. The fetch then unpacks it."""
        return self.name.endswith(_ARCHIVES)

    def misplaced(self, file: str | None) -> str:
        """The error of the model's path in the download; empty if the path is right."""
        if not self.is_archive:
            advice = f"leave out `file`, which names a file of an archive ({', '.join(_ARCHIVES)})"
            return "" if file is None else f"has the file {file!r}, but its url is that of the model itself: {advice}"
        is_inside = not PurePosixPath(file or "").is_absolute() and ".." not in PurePosixPath(file or "").parts
        return "" if is_inside else f"has the file {file!r}, which is outside the archive"

    @property
    def folder(self) -> Path:
        """The folder of the verified files in the cache. It exists if the download is complete."""
        return self.cache / self.sha256

    @property
    def partial(self) -> Path:
        """The file for the bytes that have arrived. It stays after an interruption."""
        return self.cache / f"{self.sha256}.part"

    @property
    def is_fetched(self) -> bool:
        """Whether the verified files are in the cache."""
        return self.folder.is_dir()


def cache_folder(given: Path | None = None) -> Path:
    """The cache: `given`, or that of CANDLE_ZOO_CACHE, or `candle-compiler/zoo` in the user's folder of caches.

    Raises:
        ValueError: the user has no home folder.
    """
    if given is not None or (named := os.environ.get(CACHE)):
        return given if given is not None else Path(str(named))
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "candle-compiler" / "zoo"
    except RuntimeError:
        raise ValueError(f"there is no home folder for the cache: set {CACHE}, or add --cache FOLDER") from None
