"""The devices of the tests of states."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["cpu", "emulator"])
def device(request: pytest.FixtureRequest) -> str:
    """The CPU, and a GPU."""
    name: str = request.param
    if name == "emulator":
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    return name
