"""The stand-in for a GPU: gives it to the process of a test, or to a child process."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import compiler.runtime.devices
from tests.running import SOON
from tests.standin import build

CONFIGURATION = "strict=1"
"""The configuration of tests. A large copy from pageable memory without a wait is misuse."""
UNREAD = 97
"""The exit code of a process that ends before a test reads a reported misuse."""

HIDDEN = "import compiler.runtime.devices; compiler.runtime.devices._LIBRARIES = ()\n"
"""Prevents a child process from loading NVIDIA's own libraries, which PyTorch may have installed."""


class StandIn:
    """The libraries, opened in this process, and a module for CUDA that finds them by `OWN_NAMES`."""

    def __init__(self) -> None:
        folder = build.libraries()
        opened = [ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL) for name in build.OWN_NAMES.values()]
        self.driver, self.blas, self.rand = opened
        self.driver.standin_report.restype = ctypes.c_char_p
        self.driver.standin_calls.restype = ctypes.c_char_p
        self.module = _loaded()

    def configure(self, text: str) -> None:
        """Sets `key=value,key=value` in addition to the variable STANDIN, and resets the counts of calls."""
        assert self.driver.standin_configure(text.encode()) == 0, text

    def report(self) -> list[str]:
        """The misuses since the last report, one sentence each."""
        found: bytes = self.driver.standin_report()
        return found.decode().splitlines()

    def calls(self) -> dict[str, int]:
        """How often each function was called since the last configuration."""
        found: bytes = self.driver.standin_calls()
        pairs = (line.split() for line in found.decode().splitlines())
        return {name: int(count) for name, count in pairs}


def _loaded() -> ModuleType:
    """A copy of the module for CUDA. The original module stays unchanged."""
    name = compiler.runtime.devices.CUDA
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    path = build.extension(Path(found.origin))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reason() -> str | None:
    """The reason why the stand-in is unusable here; an empty string if it is usable."""
    if importlib.util.find_spec(compiler.runtime.devices.CUDA) is None:
        return "the module for CUDA is not built: `make cuda`"
    if build.compiler() is None:
        return "there is no C++ compiler"
    if any(Path(path).exists() for path in ("/proc/driver/nvidia", "/dev/nvidia0", "/dev/dxg")):
        return "this machine has a GPU, which `make cuda-check` checks"
    return None


@functools.cache
def opened() -> StandIn:
    """The stand-in, in this process. Skips the test if the stand-in is unusable."""
    why = reason()
    if why is not None:
        pytest.skip(why)
    return StandIn()


def environment(configuration: str, folder: Path | None = None) -> dict[str, str]:
    """The environment of a child process that finds the stand-in, or the libraries of `folder`."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder or build.libraries()),
        "STANDIN": ",".join(filter(None, [CONFIGURATION, configuration])),
    }


def child(
    script: str, configuration: str = "", *arguments: object, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a script in a separate process, on the stand-in."""
    command = [sys.executable, "-c", HIDDEN + script, *map(str, arguments)]
    variables: Mapping[str, str] = environment(configuration, folder)
    return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=build.ROOT, timeout=SOON)
