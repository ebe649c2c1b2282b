"""Counts of a run's calls of the driver's functions, and the time of its waits, from CUPTI's callbacks."""

from __future__ import annotations

import ctypes
import importlib.util
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gpu import files
from gpu.chosen import chosen
from gpu.page import table
from gpu.process import Setting
from gpu.results import NotRun, Result, unavailable

RUNS = 3
DRIVER_API = 1
"""`CUPTI_CB_DOMAIN_DRIVER_API`."""
ENTER = 0
"""`CUPTI_API_ENTER`."""
QUIET = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuGetErrorString", "cuGetProcAddress_v2")
"""Functions whose cost is negligible."""


class _Call(ctypes.Structure):
    """`CUpti_CallbackData`."""

    _fields_ = (
        ("site", ctypes.c_int),
        ("function", ctypes.c_char_p),
        ("parameters", ctypes.c_void_p),
        ("returned", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
        ("context_id", ctypes.c_uint32),
        ("correlation_data", ctypes.c_void_p),
        ("correlation_id", ctypes.c_uint32),
    )


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_Call))


class Calls:
    """Counts calls of the driver's functions between `start` and `end`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self._library, self._subscriber = _cupti(), ctypes.c_void_p()
        self._callback = _CALLBACK(self._seen)  # CUPTI holds only its address
        self._entered = 0.0

    def _seen(self, _user: Any, _domain: int, _number: int, data: Any) -> None:
        call = data.contents
        name = call.function.decode()
        if call.site == ENTER:
            self.counts[name] += 1
            self._entered = time.perf_counter()
        else:
            self.seconds[name] += time.perf_counter() - self._entered

    def start(self) -> None:
        """Starts counting.

        Raises:
            NotRun: CUPTI returns an error.
        """
        self._call("cuptiSubscribe", ctypes.byref(self._subscriber), self._callback, None)
        self._call("cuptiEnableDomain", 1, self._subscriber, DRIVER_API)

    def end(self) -> None:
        """Stops counting."""
        self._call("cuptiUnsubscribe", self._subscriber)

    def _call(self, name: str, *arguments: Any) -> None:
        if status := self._library[name](*arguments):
            raise NotRun(f"{name} fails with {status}")


def _cupti() -> ctypes.CDLL:
    """CUPTI's library, from the package that PyTorch installs or from a toolkit.

    Raises:
        NotRun: CUPTI is not installed.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    places = [folder / "cu13/lib" for folder in folders] + [Path("/usr/local/cuda/extras/CUPTI/lib64")]
    for place in places:
        for file in sorted(place.glob("libcupti.so.*")):
            return ctypes.CDLL(str(file))
    raise NotRun("CUPTI is not installed")


lines = table({"launches": "launches", "waits": "waits", "ms in waits": "waiting_ms", "calls a run": "calls"})


def names(setting: Setting) -> list[str]:
    """The trained models, and the networks with batch 1."""
    networks = [name for name in files.names(setting.bundle, "networks") if name.endswith("-b1")]
    trained = files.names(setting.bundle, "trained")
    return [*(f"networks/{name}" for name in networks), *(f"trained/{name}" for name in trained)]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Launches, waits and all other calls of one run, and milliseconds in calls that wait."""
    if not setting.device.startswith("cuda"):
        raise unavailable(setting.device, "the device has no NVIDIA driver")
    session, case = chosen(name, setting)
    run = partial(session.run, case)
    run()
    calls = Calls()
    calls.start()
    for _ in range(RUNS):
        run()
    calls.end()
    counted = {function: count / RUNS for function, count in calls.counts.most_common() if function not in QUIET}
    waiting = {function: 1e3 * seconds / RUNS for function, seconds in calls.seconds.items() if is_wait(function)}
    yield {
        "launches": sum(count for function, count in counted.items() if function.startswith("cuLaunch")),
        "waits": sum(count for function, count in counted.items() if is_wait(function)),
        "waiting_ms": sum(waiting.values()),
        "calls": counted,
    }


def is_wait(function: str) -> bool:
    """Whether a function of the driver waits for the device."""
    return "Synchronize" in function
