"""Bandwidth of copies between the host and the device, and on the device."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from gpu.driver import Driver
from gpu.page import table
from gpu.process import Setting
from gpu.results import Result

SIZES = {"64 KiB": 1 << 16, "1 MiB": 1 << 20, "16 MiB": 1 << 24, "256 MiB": 1 << 28}
UP, DOWN, ON_DEVICE = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"
COPIES = {
    "host to device, pageable": (UP, False),
    "host to device, pinned": (UP, True),
    "device to host, pageable": (DOWN, False),
    "device to host, pinned": (DOWN, True),
    "device to device": (ON_DEVICE, False),
}
"""The driver's function, and whether the host's memory is pinned."""
SECONDS = 0.15
"""Seconds for all copies of one size."""

lines = table({"GB/s by size": "rates"}, notes=["On the device, the rate counts bytes read and bytes written."])


def names(setting: Setting) -> list[str]:
    """The copies."""
    return list(COPIES)


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """GB/s by the size of a copy, including the wait for it; on the device, for bytes read and written together."""
    driver = Driver(setting.device)
    function, is_pinned = COPIES[name]
    rates: dict[str, float] = {}
    for label, size in SIZES.items():
        moved = 2 * size if function == ON_DEVICE else size
        with driver.on_device(size) as target, other(driver, function, is_pinned, size) as source:
            given = (source, target) if function == DOWN else (target, source)

            def copy(given: tuple[object, object] = given, size: int = size) -> None:
                driver.call(function, *given, ctypes.c_size_t(size), driver.stream)
                driver.wait()

            rates[label] = moved / seconds(copy) / 1e9
        yield {"rates": rates}
    driver.close()


def other(driver: Driver, function: str, is_pinned: bool, size: int) -> AbstractContextManager[object]:
    """The memory at the other end of a copy."""
    if function == ON_DEVICE:
        return driver.on_device(size)
    if is_pinned:
        return driver.pinned(size)
    written = ctypes.create_string_buffer(b"\1" * size, size)
    return nullcontext(ctypes.cast(written, ctypes.c_void_p))


def seconds(copy: Callable[[], None]) -> float:
    """Seconds of one copy, after a first one."""
    copy()
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < SECONDS:
        copy()
        count += 1
    return (time.perf_counter() - start) / count
