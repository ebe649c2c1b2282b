from __future__ import annotations

from collections.abc import Iterator

import pytest

from compiler import custom, custom_modules


@pytest.fixture(autouse=True)
def no_registrations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has registrations of its own."""
    monkeypatch.setattr(custom, "_REGISTERED", {})
    monkeypatch.setattr(custom_modules, "_IMPORTED", {})
    yield
