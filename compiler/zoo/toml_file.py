"""Reads TOML files with Python's own parser. It is faster than tomlkit, which keeps comments for writers of files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_toml"]


def read_toml(path: Path) -> dict[str, Any]:
    """The document of a TOML file.

    Raises:
        OSError: there is no such file.
        ValueError: it is not TOML.
    """
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return document
