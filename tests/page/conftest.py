"""A tab of a browser for the tests of all pages, and a page in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, Page


@pytest.fixture(scope="package")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser."""
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        if not browser.starts():
            pytest.skip("Chromium does not start on this system")
        yield Page(browser)


@pytest.fixture
def page(tab: Page, file: Path) -> Page:
    """The page of a `file`, which each module makes, in the tab, wide and light."""
    tab.resize(1600, 900)
    tab.open(file.as_uri())
    return tab
