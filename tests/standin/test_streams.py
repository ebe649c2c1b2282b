"""The default streams, which other libraries name 1 (of the device) and 2 (of the thread)."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from tests.standin.device import CONFIGURATION, StandIn
from tests.standin.driver import Driver

INVALID_HANDLE, NOT_READY = 400, 600
LEGACY, PER_THREAD = c_void_p(1), c_void_p(2)
ADD = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, float[n] y) => (float[n] sum) { sum = Add(x, y) }"""

default_streams = pytest.mark.parametrize("stream", [LEGACY, PER_THREAD], ids=["legacy", "per thread"])


@default_streams
def test_a_default_stream_takes_every_call(stream: c_void_p, driver: Driver) -> None:
    event, sent, found = c_void_p(), np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    driver.call("cuEventCreate", byref(event), 2)
    first, second = driver.allocated(400, stream), driver.allocated(400, stream)
    driver.call("cuMemsetD8Async", second, 0, c_size_t(400), stream)
    driver.upload(first, sent, stream)
    driver.call("cuMemcpyDtoDAsync_v2", second, first, c_size_t(400), stream)
    driver.call("cuEventRecord", event, stream)
    driver.call("cuStreamWaitEvent", driver.stream, event, 0)
    driver.download(second, found)
    assert (found == sent).all()
    driver.call("cuEventRecord", event, driver.stream)
    driver.call("cuStreamWaitEvent", stream, event, 0)
    for block in (first, second):
        driver.free(block, stream)
    driver.call("cuStreamSynchronize", stream)
    driver.call("cuStreamQuery", stream)
    driver.call("cuEventDestroy_v2", event)


@default_streams
def test_a_default_stream_is_that_of_the_context(stream: c_void_p, driver: Driver) -> None:
    context = c_void_p()
    driver.call("cuStreamGetCtx", stream, byref(context))
    assert context.value == driver.context.value
    driver.call("cuStreamDestroy_v2", stream, code=INVALID_HANDLE)


def test_each_device_has_a_default_stream(standin: StandIn) -> None:
    standin.configure(f"{CONFIGURATION},devices=2")
    both = [Driver(standin, device) for device in range(2)]
    blocks = [c_uint64(), c_uint64()]
    for one, block in zip(both, blocks, strict=True):
        one.bind()
        one.call("cuMemAllocAsync", byref(block), c_size_t(4), LEGACY)
    for one, block in zip(both, blocks, strict=True):
        one.bind()
        device = c_int(-1)
        one.call("cuPointerGetAttribute", byref(device), 9, block)
        assert device.value == one.device
        one.call("cuStreamQuery", LEGACY, code=NOT_READY)
        one.free(block, LEGACY)
        one.call("cuStreamSynchronize", LEGACY)
        one.close()


def pending(driver: Driver, earlier: c_void_p, later: c_void_p) -> bool:
    """Whether the work of one stream is still pending when another stream has finished work submitted later."""
    value, found = c_void_p(), c_void_p()
    driver.call("cuEventCreate", byref(value), 2)
    driver.call("cuEventCreate", byref(found), 2)
    driver.call("cuEventRecord", value, earlier)
    driver.call("cuEventRecord", found, later)
    driver.call("cuEventSynchronize", found)
    code = driver.standin.driver.cuEventQuery(value)
    driver.wait()
    driver.call("cuStreamSynchronize", earlier)
    driver.call("cuEventDestroy_v2", value)
    driver.call("cuEventDestroy_v2", found)
    return bool(code == NOT_READY)


def test_the_default_streams_wait_for_each_other_alone(driver: Driver) -> None:
    outcomes: dict[tuple[str, str], set[bool]] = {}
    streams = {"legacy": LEGACY, "per thread": PER_THREAD, "its own": driver.stream}
    for seed in range(8):
        driver.standin.configure(f"{CONFIGURATION},seed={seed}")
        for earlier, later in [(one, other) for one in streams for other in streams if one != other]:
            outcome = pending(driver, streams[earlier], streams[later])
            outcomes.setdefault((earlier, later), set()).add(outcome)
    ordered = {("legacy", "per thread"), ("per thread", "legacy")}
    for pair, found in outcomes.items():
        # A non-blocking stream usually continues on its own.
        assert found == {False} if pair in ordered else True in found, pair


class Holder:
    """A tensor of another library."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__cuda_array_interface__ = interface


@pytest.mark.parametrize(
    ("stream", "facts"),
    [
        (LEGACY, {"version": 3, "stream": 1}),
        (PER_THREAD, {"version": 3, "stream": 2}),
        (LEGACY, {"version": 2}),
        (LEGACY, {}),
    ],
    ids=["legacy", "per thread", "version 2", "no version"],
)
def test_a_run_waits_for_a_default_stream(stream: c_void_p, facts: dict[str, int], driver: Driver) -> None:
    add = compiler.load(compiler.compile(onnx.parser.parse_model(ADD)), device="cuda", threads=1)
    zeros, values = np.zeros(100, np.float32), np.arange(100, dtype=np.float32)
    assert add.run({"x": zeros, "y": zeros})["sum"].tolist() == zeros.tolist()
    for seed in range(8):
        driver.standin.configure(f"{CONFIGURATION},seed={seed}")
        block = driver.allocated(400, stream)
        driver.upload(block, values, stream)
        tensor = {"shape": (100,), "typestr": "<f4", "data": (block.value, False), **facts}
        assert (add.run({"x": Holder(tensor), "y": zeros})["sum"] == values).all()
        assert driver.standin.calls()["cuStreamWaitEvent"] == 1
        driver.free(block, stream)
        driver.call("cuStreamSynchronize", stream)
