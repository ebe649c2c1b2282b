"""Runs whose inputs and outputs stay on the device, where a session takes arrays of the device."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import compiler
from gpu.timing import Run


def takes_device_arrays(session: compiler.Session) -> bool:
    """Whether a session takes arrays of the device and gives such arrays."""
    return "device_outputs" in inspect.signature(session.run).parameters


def resident_run(torch: Any, session: compiler.Session, case: Mapping[str, Any]) -> Run:
    """A run between arrays of the device, which ends when the device has computed its outputs."""
    given = {name: torch.from_numpy(value).cuda() for name, value in case.items()}
    run: Any = session.run
    torch.cuda.synchronize()

    def resident() -> Any:
        found = run(given, device_outputs=True)
        torch.cuda.synchronize()
        return found

    return resident
