"""Devices, and the extensions that run plans there.

The processor's extension is always there. The one for NVIDIA's GPUs, `compiler._runtime_cuda`, is built by `make cuda`;
it loads without a driver and says what is missing when it is to open a GPU. `compiler._runtime_emulator`, which tests
build, runs the same kernels on the processor.
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

__all__ = ["CUDA", "GIVEN_NAMES", "NAMES", "is_known", "open_extension"]

CUDA = "compiler._runtime_cuda"
_EMULATOR = "compiler._runtime_emulator"

GIVEN_NAMES = "cpu, cuda and cuda:1 (the second GPU)"
"""The devices."""
NAMES = "cpu, cuda (cuda:1 is the second GPU), and auto: cuda where it works, else cpu"
"""What a session can be asked for."""

_LIBRARIES = ("libcublasLt.so.13", "libcublas.so.13")
"""What the extension for CUDA opens beside the driver, each after what it needs itself."""


def is_known(device: str) -> bool:
    """Whether a device can be asked for by this name; the emulator's is not told of."""
    return device in ("cpu", "cuda", "auto", "emulator") or re.fullmatch(r"cuda:[0-9]{1,3}", device) is not None


def open_extension(device: str) -> tuple[Any, str]:
    """The extension that runs plans on a device, and the device's name there; not of "auto".

    Raises:
        DeviceError: the device is not known, or its extension is not there.
    """
    if not is_known(device):
        raise DeviceError(f'device "{device}": it is not known; devices are {NAMES}')
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
    """Opens NVIDIA's libraries where pip installed them, which is no place that the system looks in."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return  # without a driver nothing runs, as the extension says
    if not hasattr(driver, "cuInit"):
        raise DeviceError(f'device "{device}": libcuda.so.1 is not NVIDIA\'s driver: install it anew')
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for name in _LIBRARIES:
            library = Path(folder) / "cu13/lib" / name
            if library.exists():
                try:
                    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
                except OSError as error:
                    raise DeviceError(f'device "{device}": {library} cannot be opened ({error})') from None
