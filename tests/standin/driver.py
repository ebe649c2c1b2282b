"""Calls the stand-in's driver as a module does."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

from tests.standin.device import StandIn

NON_BLOCKING = 1


class Driver:
    """A context with two streams, and calls that must succeed."""

    def __init__(self, standin: StandIn, device: int = 0) -> None:
        self.standin, self.device, self.context = standin, device, c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.bind()
        self.stream, self.other = self.new_stream(), self.new_stream()

    def call(self, name: str, *arguments: Any, code: int = 0) -> None:
        assert getattr(self.standin.driver, name)(*arguments) == code, name

    def bind(self) -> None:
        """Makes the context current in the calling thread."""
        self.call("cuCtxSetCurrent", self.context)

    def new_stream(self) -> c_void_p:
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), NON_BLOCKING)
        return stream

    def allocated(self, size: int, stream: c_void_p | None = None) -> c_uint64:
        address = c_uint64()
        self.call("cuMemAllocAsync", byref(address), c_size_t(size), stream or self.stream)
        return address

    def free(self, address: c_uint64, stream: c_void_p | None = None) -> None:
        self.call("cuMemFreeAsync", address, stream or self.stream)

    def upload(self, to: c_uint64, array: np.ndarray[Any, Any], stream: c_void_p | None = None) -> None:
        source = c_void_p(array.ctypes.data)
        self.call("cuMemcpyHtoDAsync_v2", to, source, c_size_t(array.nbytes), stream or self.stream)

    def download(self, address: c_uint64, array: np.ndarray[Any, Any], stream: c_void_p | None = None) -> None:
        target = c_void_p(array.ctypes.data)
        self.call("cuMemcpyDtoHAsync_v2", target, address, c_size_t(array.nbytes), stream or self.stream)

    def wait(self) -> None:
        for stream in (self.stream, self.other):
            self.standin.driver.cuStreamSynchronize(stream)

    def close(self) -> None:
        self.call("cuStreamDestroy_v2", self.stream)
        self.call("cuStreamDestroy_v2", self.other)
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)
