"""Devices, and the extensions that run plans there.

Every build has the extension for the CPU. `make cuda` builds the one for NVIDIA GPUs, `compiler._runtime_cuda`. It
loads without a driver, and reports a missing library when it opens a GPU. `compiler._runtime_emulator`, which tests
build, runs the same kernels on the CPU.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

from compiler import _runtime
from compiler.errors import DeviceError

__all__ = ["CUDA", "GIVEN_NAMES", "NAMES", "has_cuda", "is_known", "open_extension", "refuse_unknown"]

CUDA = "compiler._runtime_cuda"
_EMULATOR = "compiler._runtime_emulator"

GIVEN_NAMES = "cpu, cuda and cuda:1 (the second GPU)"
"""The devices."""
NAMES = "cpu, cuda (cuda:1 is the second GPU), and auto: cuda if it works, otherwise cpu"
"""The devices that a session accepts."""

_DRIVER = "libcuda.so.1"
_LIBRARIES = ("libcublasLt.so.13", "libcublas.so.13")
"""The libraries that the extension for CUDA opens besides the driver. Each stands after its dependencies."""


def is_known(device: str) -> bool:
    """Whether a session accepts this name of a device. No message mentions the emulator's name."""
    return device in ("cpu", "cuda", "auto", "emulator") or re.fullmatch(r"cuda:[0-9]{1,3}", device) is not None


def refuse_unknown(device: str) -> None:
    """Check the name of a device.

    Raises:
        DeviceError: the device is unknown.
    """
    if not is_known(device):
        raise DeviceError(f'device "{device}": unknown; devices are {NAMES}')


def has_cuda() -> bool:
    """Whether the extension for CUDA is built, and the system has NVIDIA's driver.

    The function does not open a GPU, because processes that are forked later could not use the GPU.
    """
    if importlib.util.find_spec(CUDA) is None:
        return False
    try:
        return hasattr(ctypes.CDLL(_DRIVER), "cuInit")
    except OSError:
        return False


def open_extension(device: str) -> tuple[Any, str]:
    """The extension that runs plans on a device, and the device's name there. The name is not "auto".

    Raises:
        DeviceError: the device is unknown, or its extension is missing.
    """
    refuse_unknown(device)
    if device == "cpu":
        return _runtime, device
    if device == "emulator":
        return _extension(_EMULATOR, device, "`make emulator` builds it, for tests"), device
    module = _extension(CUDA, device, "build it with `make cuda`, or run on 'cpu'")
    _open_libraries(device)
    return module, device


def _extension(name: str, device: str, advice: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise DeviceError(f'device "{device}": this build of candle-compiler has no module {name}: {advice}') from None
    except ImportError as error:
        raise DeviceError(f'device "{device}": the module {name} cannot be loaded ({error}): {advice}') from None


def _open_libraries(device: str) -> None:
    """Open NVIDIA's libraries from pip's packages, because the system does not search there."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return  # without a driver the extension raises its own error
    if not hasattr(driver, "cuInit"):
        raise DeviceError(f'device "{device}": libcuda.so.1 is not NVIDIA\'s driver: install the driver again')
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for name in _LIBRARIES:
            library = Path(folder) / "cu13/lib" / name
            if library.exists():
                try:
                    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
                except OSError as error:
                    raise DeviceError(f'device "{device}": {library} cannot be opened ({error})') from None
