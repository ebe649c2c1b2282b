"""The documented surface of the crate for Rust programs: few types, all at its root, and no others in signatures."""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.sources import files

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "runtime"
SOURCE = RUNTIME / "plan/src"

TYPES = {
    "CustomCall",
    "DType",
    "Error",
    "ErrorKind",
    "Place",
    "Request",
    "Session",
    "SessionBuilder",
    "State",
    "Type",
    "Value",
    "Weights",
}
"""The structures and enumerations."""
TRAITS = {"CustomOp", "Element"}
ALIASES = {"Result"}

MOST = 12
"""The most types that a user of the crate has to know."""


@pytest.fixture(scope="module")
def pages() -> Path:
    """The folder of the crate's documentation. A broken link fails the build."""
    options = {"RUSTDOCFLAGS": "-D warnings"}
    command = ["cargo", "doc", "--locked", "--release", "--no-deps", "--package", "candle-plan"]
    done = subprocess.run(command, cwd=RUNTIME, env={**os.environ, **options}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(os.environ.get("CARGO_TARGET_DIR", RUNTIME / "target")) / "doc/candle_plan"


def documented(pages: Path) -> dict[str, set[str]]:
    """The items of the crate that have a page, by kind. An item inside a module has a path as its name."""
    found: dict[str, set[str]] = {}
    for path, kind, name in re.findall(r'href="([\w/]*)\b(\w+)\.(\w+)\.html"', (pages / "all.html").read_text()):
        found.setdefault(kind, set()).add(path + name)
    return found


def test_the_surface_is_small(pages: Path) -> None:
    found = documented(pages)
    assert found.get("struct", set()) | found.get("enum", set()) == TYPES
    assert {kind: names for kind, names in found.items() if kind not in ("struct", "enum")} == {
        "trait": TRAITS,
        "type": ALIASES,
    }
    assert len(TYPES) <= MOST


def signatures(page: str) -> list[str]:
    """The texts of the methods, fields and implementations on a page."""
    code = r'<h[34] class="code-header">(.*?)</h[34]>|<span id="[\w.]*field\.\w+"[^>]*>(.*?)</span>'
    variant = r'id="variant\.\w+"'
    text = re.sub(rf"<section {variant}.*?</section>", "", page, flags=re.DOTALL)
    return [html.unescape(re.sub("<[^>]*>", "", "".join(parts))) for parts in re.findall(code, text, re.DOTALL)]


def test_signatures_name_no_hidden_types(pages: Path) -> None:
    """Of the types and traits of the crate, only those with a page are in the signatures of others."""
    defined = {
        name
        for path in files(SOURCE)
        if path.suffix == ".rs"
        for name in re.findall(r"^pub (?:struct|enum|trait|type) (\w+)", path.read_text(), re.MULTILINE)
    }
    hidden = defined - TYPES - TRAITS - ALIASES
    assert {"Array", "Outputs", "Settings"} <= hidden
    found = {
        (page.name, text, word)
        for page in sorted(pages.glob("*.html"))
        if page.name.split(".")[0] in {"struct", "enum", "trait"}
        for text in signatures(page.read_text())
        for word in re.findall(r"\b[A-Z]\w+\b(?! *=)", text)  # the name of an associated type stands before `=`
        if word in hidden and f"::{word}" not in text and not text.startswith("type ")
    }
    assert found == set()


def test_programs_outside_use_only_what_is_documented() -> None:
    """The examples and the server are programs that others copy."""
    folders = (RUNTIME / "plan/examples", RUNTIME / "plan/tests", RUNTIME / "server", ROOT / "tests/standin/candle/src")
    programs = [path for folder in folders for path in files(folder) if path.suffix == ".rs"]
    assert len(programs) > 10
    assert [path.name for path in programs if "candle_plan::internal" in path.read_text()] == []
