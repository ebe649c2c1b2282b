"""Fixtures and functions that the tests of the stand-in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.standin.device import StandIn
from tests.standin.driver import Driver


@pytest.fixture
def driver(standin: StandIn) -> Iterator[Driver]:
    """A context of the first device, which is released."""
    found = Driver(standin)
    yield found
    found.close()
