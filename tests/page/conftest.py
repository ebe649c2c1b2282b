"""A tab of a browser, for the tests of all pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, Page


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser."""
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        if not browser.starts():
            pytest.skip("Chromium does not start on this system")
        yield Page(browser)
