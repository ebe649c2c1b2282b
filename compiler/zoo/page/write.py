"""Puts the data of the page, its style sheets and its scripts into the template."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from compiler.atomic_files import write_whole
from compiler.zoo.page.data import page_data
from compiler.zoo.page.history import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

__all__ = ["html_of", "write_page"]

_STYLES = ("base.css", "grid.css", "model.css")
_SCRIPTS = (
    *("elements.js", "numbers.js", "verdicts.js", "plots.js", "tables.js", "columns.js"),
    *("filters.js", "grid.js", "keys.js", "outcomes.js", "facts.js", "profile.js", "model.js", "main.js"),
)


def write_page(path: Path, title: str, results: Mapping[str, Sequence[dict[str, Any]]]) -> int:
    """Write the page of files of results, which have names, the oldest first. Returns the number of models.

    Raises:
        OSError: the file cannot be written.
        ValueError: the results have no check of a model, or a number that is not finite.
    """
    data = page_data(title, [Run(name, lines) for name, lines in results.items()])
    if not data["models"]:
        raise ValueError("no file has a check of a model: `candlec zoo run --results FILE` writes checks")
    write_whole(path, html_of(data).encode())
    return len(data["models"])


def html_of(data: Mapping[str, Any]) -> str:
    """The page of these data. It loads nothing, and only its own scripts and styles may take effect."""
    folder = resources.files(__package__)
    style, script = (
        "".join(folder.joinpath(name).read_text("utf-8") for name in names) for names in (_STYLES, _SCRIPTS)
    )
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
    parts = {
        "title": escape(data["title"]).encode("ascii", "xmlcharrefreplace").decode(),
        "policy": f"{policy}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": _json(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _together(["page.html"]))


def _together(names: Sequence[str]) -> str:
    """The text of files of this folder, one after another."""
    folder = resources.files(__package__)
    return "".join(folder.joinpath(name).read_text("utf-8") for name in names)


def _json(data: Mapping[str, Any]) -> str:
    """The data as JSON in ASCII. No text in it ends the block of HTML that contains it.

    Raises:
        ValueError: a number is not finite.
    """
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ValueError("a result has a number that is not finite") from error
    return text.translate({ord(each): f"\\u{ord(each):04x}" for each in "<>&"})


def _digest(text: str) -> str:
    """The digest of a script or style by which the page's policy allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
