"""Puts the data of a page, its style sheets and its scripts into the template."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["KINDS", "html_of"]


class Kind(NamedTuple):
    """A kind of pages: the template of its content, its style sheets and its scripts, each in this order."""

    body: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]


_COMMON = ("elements.js", "numbers.js", "verdicts.js", "plots.js", "tables.js", "outcomes.js", "facts.js")

KINDS = {
    "results": Kind(
        "results.html",
        ("base.css", "grid.css", "model.css"),
        (*_COMMON, "columns.js", "filters.js", "grid.js", "keys.js", "profile.js", "memory.js", "model.js", "main.js"),
    ),
    "report": Kind(
        "view.html",
        ("base.css", "model.css", "modules.css"),
        (*_COMMON, "sections.js", "profile.js", "memory.js", "modules.js", "steps.js", "passes.js", "report.js"),
    ),
    "difference": Kind(
        "view.html",
        ("base.css", "model.css", "modules.css"),
        (*_COMMON, "sections.js", "modules.js", "difference.js"),
    ),
}


def html_of(data: Mapping[str, Any], kind: str = "results") -> str:
    """The page of a kind with these data. It loads nothing, and only its own scripts and styles may take effect.

    Raises:
        ValueError: a number is not finite.
    """
    found = KINDS[kind]
    style, script = _together("styles", found.styles), _together("scripts", found.scripts)
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
    parts = {
        **{key: _escaped(data.get(key, "")) for key in ("title", "summary")},
        "policy": f"{policy}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": _json(data),
    }
    template = _together("templates", ["page.html"]).replace("{{body}}", _together("templates", [found.body]).strip())
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _together(folder: str, names: Sequence[str]) -> str:
    """The text of files in a folder of this package, one after another."""
    place = resources.files(__package__).joinpath(folder)
    return "".join(place.joinpath(name).read_text("utf-8") for name in names)


def _escaped(text: str) -> str:
    """A text for HTML, also if it has lone surrogates."""
    return escape(text).encode("utf-8", "xmlcharrefreplace").decode()


def _json(data: Mapping[str, Any]) -> str:
    """The data as JSON in ASCII. No text in it ends the block of HTML that contains it."""
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ValueError("a result has a number that is not finite") from error
    return text.translate({ord(each): f"\\u{ord(each):04x}" for each in "<>&"})


def _digest(text: str) -> str:
    """The digest of a script or style by which the page's policy allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
