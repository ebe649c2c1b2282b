"""Fixtures and functions that the tests of several files use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from compiler.runtime.devices import CUDA
from tests.standin import device

if os.environ.get("WITHOUT_TORCH"):  # `make test-fast`: as if PyTorch were not installed
    sys.modules["torch"] = None  # type: ignore[assignment]


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[device.StandIn]:
    """A GPU that the processor stands in for, as `device="cuda"`; a test that misuses it fails."""
    found = device.opened()
    monkeypatch.setitem(sys.modules, CUDA, found.module)
    found.configure(device.CONFIGURATION)
    found.report()
    yield found
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
