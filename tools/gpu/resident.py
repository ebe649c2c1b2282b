"""Runs of a plan for comparison with PyTorch: from the host, and with inputs and outputs that stay on the device."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import compiler
from gpu.results import one_line
from gpu.timing import Run


def ours(torch: Any, session: compiler.Session, case: Mapping[str, Any]) -> tuple[dict[str, Run], dict[str, str]]:
    """The plan's runs by `ours, place`, and the reasons why others cannot run."""
    runs: dict[str, Run] = {"ours, host": partial(session.run, case)}
    if not takes_device_arrays(session):
        return runs, {"ours, resident": "the session accepts only arrays on the host"}
    try:
        run = resident_run(torch, session, case)
        run()
    except Exception as error:  # the other runs are still timed
        return runs, {"ours, resident": one_line(error)[:300]}
    return runs | {"ours, resident": run}, {}


def takes_device_arrays(session: compiler.Session) -> bool:
    """Whether a session accepts and returns arrays on the device."""
    return "device_outputs" in inspect.signature(session.run).parameters


def resident_run(torch: Any, session: compiler.Session, case: Mapping[str, Any]) -> Run:
    """A run with inputs and outputs on the device, which ends when the device has computed the outputs."""
    given = {name: torch.from_numpy(value).cuda() for name, value in case.items()}
    run: Any = session.run
    torch.cuda.synchronize()

    def resident() -> Any:
        found = run(given, device_outputs=True)
        torch.cuda.synchronize()
        return found

    return resident
