"""What tests see of a page in Chromium: its tables, its errors, and what axe-core finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser import CHROMIUM, Page

__all__ = ["NEEDS_CHROMIUM", "WIDTHS", "check_widths", "failures", "focus", "rows", "serious"]

NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium: `make test-page` installs it, as does `apt-get install chromium` as root"
)
WIDTHS = (360, 800, 1600)


def rows(page: Page, caption: str) -> list[list[str]]:
    """The texts of the cells of a table, by its caption, with those that only screen readers show."""
    table = (
        f"[...document.querySelectorAll('table')].find((t) => t.caption?.textContent.startsWith({json.dumps(caption)}))"
    )
    return list(
        page.value(f"[...{table}.tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent.trim()))")
    )


def focus(page: Page) -> str:
    """The text of what has the focus."""
    return str(page.value("document.activeElement.textContent"))


def failures(page: Page) -> list[Any]:
    """The exceptions and the console messages of the page's scripts since the browser opened the page."""
    return [each for event in ("exceptionThrown", "consoleAPICalled") for each in page.events(f"Runtime.{event}")] + [
        *page.events("Log.entryAdded")
    ]


def serious(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    axe = pytest.importorskip("axe_core_python", reason="needs axe-core: `make test-page` installs it")
    page.value(f"{Path(axe.__file__).with_name('axe.min.js').read_text()}; 0")
    found = page.value("axe.run({ resultTypes: ['violations'] }).then((found) => found.violations)")
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")]


def check_widths(page: Page, address: str, script: str = "0", last: str = "0") -> None:
    """At each width, the page of an address fits, its scripts do not fail, and axe-core finds nothing serious.

    The page runs a `script` after it is opened, and the `last` one before axe-core. It is dark at the middle width.
    """
    grounds = set()
    for width in WIDTHS:
        page.resize(width, 900, is_dark=width == WIDTHS[1])
        page.open(address)
        page.value(script)
        assert page.value("document.documentElement.scrollWidth") == width, f"{address} at {width}"
        assert not failures(page)
        grounds.add(page.value("getComputedStyle(document.body).backgroundColor"))
        page.value(last)
        assert not serious(page), f"{address} at {width}"
    assert grounds == {"rgb(255, 255, 255)", "rgb(16, 20, 24)"}
