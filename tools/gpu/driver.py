"""NVIDIA's driver through ctypes: attributes of the device, and copies."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpu.results import NotRun, unavailable

ATTRIBUTES = {
    "multiprocessors": 16,
    "clock, kHz": 13,
    "memory clock, kHz": 36,
    "memory bus, bits": 37,
    "L2 cache, bytes": 38,
    "shared memory a multiprocessor, bytes": 81,
    "shared memory a block at most, bytes": 97,
    "registers a multiprocessor": 82,
    "threads a multiprocessor": 39,
    "capability, major": 75,
    "capability, minor": 76,
    "copy engines": 40,
    "managed memory": 83,
    "pageable memory access": 88,
    "pageable access by the host's page tables": 100,
    "memory pools": 115,
}
"""Text on the page → `CUdevice_attribute`."""


class Driver:
    """The driver with the primary context of a device, which is current in this thread."""

    def __init__(self, device: str) -> None:
        """Opens the driver.

        Raises:
            NotRun, LeftOut: the driver is missing, or does not start.
        """
        if not device.startswith("cuda"):
            raise unavailable(device, "the device has no NVIDIA driver")
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NotRun(str(error)) from None
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        ordinal = int(device.partition(":")[2] or 0)
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function.

        Raises:
            NotRun: the driver lacks it, or it fails.
        """
        try:
            status = self._library[name](*arguments)
        except AttributeError:
            raise NotRun(f"the driver has no {name}") from None
        if status:
            raise NotRun(f"{name} fails with {status}")

    def close(self) -> None:
        """Releases the context."""
        self.call("cuStreamDestroy_v2", self.stream)
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)

    def version(self) -> str:
        """The CUDA version of the driver."""
        found = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(found))
        return f"{found.value // 1000}.{found.value % 1000 // 10}"

    def name(self) -> str:
        """The name of the device."""
        found = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", found, 128, self.device)
        return found.value.decode()

    def attribute(self, number: int) -> int | None:
        """An attribute of the device; `None` if the driver does not know it."""
        found = ctypes.c_int()
        try:
            self.call("cuDeviceGetAttribute", ctypes.byref(found), number, self.device)
        except NotRun:
            return None
        return found.value

    def memory(self) -> int:
        """The device's memory in bytes."""
        found = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(found), self.device)
        return found.value

    def wait(self) -> None:
        """Waits for the stream."""
        self.call("cuStreamSynchronize", self.stream)

    @contextmanager
    def on_device(self, size: int) -> Iterator[ctypes.c_uint64]:
        """A buffer in the device's memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        try:
            yield address
        finally:
            self.call("cuMemFree_v2", address)

    @contextmanager
    def pinned(self, size: int) -> Iterator[ctypes.c_void_p]:
        """A pinned buffer in the host's memory."""
        address = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), 0)
        try:
            yield address
        finally:
            self.call("cuMemFreeHost", address)
