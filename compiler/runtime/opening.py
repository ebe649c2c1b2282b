"""Opens the session of an extension for a plan or a plan file."""

from __future__ import annotations

import os
import stat
from typing import Any

from compiler import _runtime
from compiler.errors import DeviceError, PlanError
from compiler.plan import Plan
from compiler.plan.plan import FIRST, unsound
from compiler.runtime.devices import open_extension, refuse_unknown
from compiler.runtime.failures import own_errors
from compiler.validate import LARGEST, validate_instance, validate_whole_number

__all__ = ["opened", "validate_loading"]

Opened = tuple[Any, Any, str | None]
"""The extension that runs plans on a device, its session, and the reason for the CPU if the device was "auto"."""


def validate_loading(plan: Any, device: Any, threads: Any, max_memory: Any) -> tuple[int | None, int | None]:
    """Check these arguments of `compiler.load`, and return the last two as numbers of Python.

    Raises:
        TypeError, ValueError: an argument has a wrong type or value.
        DeviceError: there is no device of this name.
    """
    validate_instance("plan", plan, (Plan, str, os.PathLike), "a compiler.Plan or the path of a plan file")
    validate_instance("device", device, str, "the name of a device")
    refuse_unknown(device)
    if threads is not None:
        threads = validate_whole_number("threads", threads, 1, _runtime.MAX_THREADS)
    if max_memory is not None:
        max_memory = validate_whole_number("max_memory", max_memory, 0, LARGEST - 1)
    return threads, max_memory


def opened(plan: Plan | str | os.PathLike[str], device: str, options: tuple[Any, ...]) -> Opened:
    """The session for a plan or a file. The options are those of the runtime.

    Raises:
        PlanError, DeviceError, OSError: as `compiler.load`.
    """
    if isinstance(plan, Plan):
        return _on_device(plan.source, device, options)
    with open(plan, "rb") as file:  # noqa: PTH123 (pathlib takes the empty path for the working folder)
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe can be read only once
            return _on_device(file.read(), device, options)
        first = file.read(FIRST)
    try:
        return _on_device(os.fspath(plan), device, options)
    except PlanError as error:
        raise unsound(plan, first, error) from None


def _on_device(source: Any, device: str, options: tuple[Any, ...]) -> Opened:
    """The session on the device, or on the CPU if the device is "auto" and CUDA does not work."""
    if device != "auto":
        return *_by_extension(device, source, options), None
    try:
        return *_by_extension("cuda", source, options), None
    except DeviceError as error:
        return *_by_extension("cpu", source, options), str(error)


def _by_extension(device: str, source: Any, options: tuple[Any, ...]) -> tuple[Any, Any]:
    module, name = open_extension(device)
    with own_errors(module):
        return module, module.Session(source, name, *options)
