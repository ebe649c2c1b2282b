"""Makes the good sides before a test breaks something."""

from __future__ import annotations

import pytest

from tests.searches.good_sides import good_facts, good_plan


@pytest.fixture(autouse=True)
def good_sides() -> None:
    """The good sides, which are made once."""
    good_plan()
    good_facts()
