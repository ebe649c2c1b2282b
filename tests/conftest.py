"""What tests of several files use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.standin import device


@pytest.fixture
def standin() -> Iterator[device.StandIn]:
    """A GPU that the processor stands in for, as `device="cuda"`; a test that misuses it fails."""
    found = device.opened()
    found.configure(device.CONFIGURATION)
    found.report()
    yield found
    found.configure(device.NO_GPU)
    misused = found.report()
    assert not misused, misused


@pytest.fixture(params=["emulator", "cuda"])
def gpu(request: pytest.FixtureRequest) -> str:
    """Each device that the processor plays, by its name."""
    name: str = request.param
    if name == "cuda":
        request.getfixturevalue("standin")
    else:
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    return name
