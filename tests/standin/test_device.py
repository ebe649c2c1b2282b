"""The stand-in itself: it has the documented behavior of a driver, and reports errors that a driver does not."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_int, c_longlong, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest

from tests.standin.device import CONFIGURATION, StandIn, child
from tests.standin.driver import Driver

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, OUT_OF_MEMORY, NOT_READY, NOT_SUPPORTED = 1, 201, 400, 2, 600, 801


def test_bytes_come_back_in_the_order_of_the_stream(driver: Driver) -> None:
    sent, found = np.arange(1000, dtype=np.int32), np.zeros(1000, np.int32)
    block = driver.allocated(4000)
    driver.upload(block, sent)
    driver.upload(block, sent + 1)
    driver.download(block, found)
    assert (found == sent + 1).all()
    driver.free(block)


def test_the_host_cannot_read_memory_of_the_device(driver: Driver) -> None:
    block = driver.allocated(4000)
    driver.wait()
    # A system call that reads an invalid address returns an error, where a read would end the process.
    source, target = os.pipe()
    with pytest.raises(OSError, match="Bad address"):
        os.write(target, (ctypes.c_char * 4).from_address(block.value))
    os.close(source)
    os.close(target)
    driver.free(block)


def late(driver: Driver) -> None:
    driver.standin.configure("upload=late")


def changed(driver: Driver, block: c_uint64) -> None:
    late(driver)
    source = np.zeros(1000, np.int32)
    driver.upload(block, source)
    source[999] = 1
    driver.wait()


def freed_source(driver: Driver, block: c_uint64) -> None:
    late(driver)
    source = c_void_p()
    driver.call("cuMemHostAlloc", byref(source), c_size_t(4000), 0)
    driver.call("cuMemcpyHtoDAsync_v2", block, source, c_size_t(4000), driver.stream)
    driver.call("cuMemFreeHost", source)
    driver.wait()


def not_waited_for(driver: Driver, block: c_uint64) -> None:
    driver.standin.configure("strict=1")
    large = driver.allocated(1 << 17)
    source = np.zeros(1 << 17, np.uint8)
    driver.upload(large, source)
    driver.free(large)
    driver.wait()


def read_of_freed_memory(driver: Driver, block: c_uint64) -> None:
    other = driver.allocated(4000)
    driver.free(other)
    driver.standin.driver.cuMemcpyDtoHAsync_v2(c_void_p(np.zeros(4).ctypes.data), other, c_size_t(4), driver.stream)


def freed_in_another_stream(driver: Driver, block: c_uint64) -> None:
    # Without a wait, the other stream may free the block first. With this seed, it does.
    driver.standin.configure(f"{CONFIGURATION},seed=1")
    other = driver.allocated(4000)
    driver.wait()
    driver.free(other, driver.other)
    driver.call("cuStreamSynchronize", driver.other)
    driver.upload(other, np.zeros(4))
    driver.wait()


def copied_past_the_end(driver: Driver, block: c_uint64) -> None:
    driver.upload(block, np.zeros(1001, np.int32))
    driver.wait()


def freed_twice(driver: Driver, block: c_uint64) -> None:
    other = driver.allocated(4000)
    driver.free(other)
    driver.call("cuMemFreeAsync", other, driver.stream, code=INVALID_VALUE)


def null_stream(driver: Driver, block: c_uint64) -> None:
    driver.call("cuStreamSynchronize", None, code=INVALID_HANDLE)


def unknown_attribute(driver: Driver, block: c_uint64) -> None:
    driver.call("cuDeviceGetAttribute", byref(c_int()), 9999, 0, code=INVALID_VALUE)


def pool_of_a_device_without_pools(driver: Driver, block: c_uint64) -> None:
    driver.standin.configure("pools=0")
    supported = c_int(-1)
    driver.call("cuDeviceGetAttribute", byref(supported), 115, 0)
    assert supported.value == 0
    driver.call("cuMemAllocAsync", byref(c_uint64()), c_size_t(4), driver.stream, code=NOT_SUPPORTED)
    driver.call("cuMemPoolTrimTo", None, c_size_t(0), code=NOT_SUPPORTED)
    outside = c_uint64()
    driver.call("cuMemAlloc_v2", byref(outside), c_size_t(4))
    driver.call("cuMemFree_v2", outside)


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (changed, "the source of an upload of 4000 bytes changed before the copy ran"),
        (freed_source, "4000 bytes of pinned memory are freed while 1 copies of them wait"),
        (freed_source, "the source of an upload of 4000 bytes was freed before the copy ran"),
        (not_waited_for, "cuMemFreeAsync is called while an upload of 131072 bytes from pageable memory is not waited"),
        (read_of_freed_memory, "lies in a block of 4000 bytes that is freed"),
        (freed_in_another_stream, "lies in a block of 4000 bytes that is freed"),
        (copied_past_the_end, "4004 bytes at byte 0 are beyond a block of 4000"),
        (freed_twice, "which is freed or inside of a block"),
        (null_stream, "which is null or does not exist"),
        (unknown_attribute, "asks for attribute 9999"),
        (pool_of_a_device_without_pools, "cuMemAllocAsync is called, and the device has no memory pools"),
        (pool_of_a_device_without_pools, "cuMemPoolTrimTo is called, and the device has no memory pools"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_misuse_is_reported(misuse: Callable[[Driver, c_uint64], None], sentence: str, driver: Driver) -> None:
    block = driver.allocated(4000)
    driver.wait()
    misuse(driver, block)
    driver.standin.configure(CONFIGURATION)
    driver.free(block)
    driver.wait()
    report = driver.standin.report()
    assert [line for line in report if sentence in line], report


def test_leaks_are_reported_when_the_context_is_released(standin: StandIn) -> None:
    driver = Driver(standin)
    driver.allocated(12)
    event = c_void_p()
    driver.call("cuEventCreate", byref(event), 0)
    driver.close()
    assert standin.report() == [
        "the context is released while 1 blocks are allocated: 12 bytes",
        "the context is released while there are 1 events",
    ]


def test_pinned_memory_is_that_of_its_device(standin: StandIn) -> None:
    standin.configure(f"{CONFIGURATION},devices=2")
    pieces = [c_void_p(), c_void_p()]
    both = [Driver(standin, device) for device in range(2)]
    for one, piece in zip(both, pieces, strict=True):
        one.bind()
        one.call("cuMemHostAlloc", byref(piece), c_size_t(400), 0)
    both[0].bind()
    both[0].close()
    assert standin.report() == ["the context is released while 1 pieces of memory are pinned"]
    both[1].bind()
    both[1].call("cuMemFreeHost", pieces[0], code=INVALID_VALUE)
    both[1].call("cuMemFreeHost", pieces[1])
    both[1].close()


def test_events_order_streams(driver: Driver) -> None:
    for seed in range(8):
        driver.standin.configure(f"{CONFIGURATION},seed={seed}")
        event, found = c_void_p(), np.zeros(100, np.int32)
        driver.call("cuEventCreate", byref(event), 2)
        block = driver.allocated(400)
        driver.upload(block, np.full(100, seed, np.int32))
        driver.call("cuEventRecord", event, driver.stream)
        driver.call("cuStreamWaitEvent", driver.other, event, 0)
        driver.download(block, found, driver.other)
        assert (found == seed).all()
        driver.free(block, driver.other)
        driver.call("cuEventDestroy_v2", event)


@pytest.mark.parametrize("symbol", ["cuMemAllocFromPool", "cublasCreate", "cuda", "cuGetErrorName", ""])
@pytest.mark.parametrize("key", ["fail", "lost"])
def test_a_failure_of_no_function_is_refused(key: str, symbol: str, standin: StandIn, capfd: Any) -> None:
    failure = f"{key}={symbol}:1:700"
    assert standin.driver.standin_configure(failure.encode()) == 1
    assert capfd.readouterr().err == f'stand-in: "{failure}" means nothing\n'
    done = child("import ctypes; ctypes.CDLL('libcuda.so.1')", failure)
    assert done.returncode < 0
    assert done.stderr == f'stand-in: STANDIN has "{failure}", which means nothing\n'


def test_a_failure_of_each_library_is_taken(standin: StandIn) -> None:
    for symbol in ("cuInit", "cublasCreate_v2", "curandCreateGenerator"):
        standin.configure(f"fail={symbol}:1+:3,lost={symbol}:2:700")
    standin.configure(CONFIGURATION)


def test_nothing_runs_before_somebody_waits(driver: Driver) -> None:
    event = c_void_p()
    driver.call("cuEventCreate", byref(event), 2)
    block = driver.allocated(400)
    driver.upload(block, np.zeros(100, np.int32))
    driver.call("cuEventRecord", event, driver.stream)
    codes = [driver.standin.driver.cuEventQuery(event) for _ in range(4)]
    # Each question lets one operation run: the allocation, the copy, the record.
    assert codes == [NOT_READY, NOT_READY, NOT_READY, 0]
    driver.free(block)
    driver.call("cuEventDestroy_v2", event)


def test_pinned_memory_is_read_late_and_written_late(driver: Driver) -> None:
    start = c_void_p()
    driver.call("cuMemHostAlloc", byref(start), c_size_t(400), 0)
    pinned = np.ctypeslib.as_array((ctypes.c_int32 * 100).from_address(start.value or 0))
    block = driver.allocated(400)
    driver.upload(block, np.arange(100, dtype=np.int32))
    driver.download(block, pinned)
    assert (pinned.view(np.uint8) == 0xA5).all()
    driver.wait()
    assert (pinned == np.arange(100)).all()
    driver.free(block)
    driver.call("cuMemFreeHost", start)


def test_pools_keep_memory_up_to_their_threshold(driver: Driver) -> None:
    pool, value, mib = c_void_p(), c_uint64(), 1 << 20
    driver.call("cuDeviceGetDefaultMemPool", byref(pool), 0)

    def reserved() -> int:
        driver.call("cuMemPoolGetAttribute", pool, 5, byref(value))
        return value.value

    for threshold, kept in ((0, 0), (2**64 - 1, 64 * mib)):
        driver.call("cuMemPoolSetAttribute", pool, 4, byref(c_uint64(threshold)))
        driver.free(driver.allocated(64 * mib))
        assert reserved() >= 64 * mib
        driver.wait()
        assert reserved() == kept
    driver.call("cuMemPoolTrimTo", pool, c_size_t(0))
    assert reserved() == 0
    driver.call("cuMemPoolSetAttribute", pool, 4, byref(c_uint64(0)))


def test_memory_has_a_limit(driver: Driver) -> None:
    driver.standin.configure("memory=64M")
    driver.call("cuMemAllocAsync", byref(c_uint64()), c_size_t(65 << 20), driver.stream, code=OUT_OF_MEMORY)
    first = driver.allocated(40 << 20)
    driver.call("cuMemAllocAsync", byref(c_uint64()), c_size_t(40 << 20), driver.stream, code=OUT_OF_MEMORY)
    driver.free(first)
    # The same stream can reuse memory that it freed, without a wait.
    driver.free(driver.allocated(40 << 20))
    driver.wait()


def test_a_call_without_a_context_is_refused(driver: Driver) -> None:
    context = c_void_p()
    driver.call("cuCtxGetCurrent", byref(context))
    driver.call("cuCtxSetCurrent", None)
    driver.call("cuMemAllocAsync", byref(c_uint64()), c_size_t(4), driver.stream, code=INVALID_CONTEXT)
    driver.call("cuCtxSetCurrent", context)


KERNEL = "copy_u8"
PTX = """//
.version {version}
.target {target}
.address_size 64
.visible .entry copy_u8(
    .param .align 8 .b8 copy_u8_param_0[{size}]
)
{{ ret; }}
"""


@pytest.mark.parametrize(
    ("configuration", "version", "target", "size", "code"),
    [
        ("", "9.0", "sm_80", 120, 0),
        ("capability=12.0", "9.0", "sm_80", 120, 0),
        ("capability=8.0", "9.0", "sm_90", 120, 209),
        ("", "9.1", "sm_80", 120, 222),
        ("driver=13010", "9.1", "sm_80", 120, 0),
        ("", "9.0", "sm_80", 112, 218),
    ],
)
def test_modules(configuration: str, version: str, target: str, size: int, code: int, driver: Driver) -> None:
    driver.standin.configure(f"{CONFIGURATION},{configuration}")
    module, function = c_void_p(), c_void_p()
    image = PTX.format(version=version, target=target, size=size).encode()
    driver.call("cuModuleLoadData", byref(module), c_char_p(image), code=code)
    if code == 0:
        driver.call("cuModuleGetFunction", byref(function), module, KERNEL.encode())
        driver.call("cuModuleGetFunction", byref(function), module, b"fill_u7", code=500)
        driver.call("cuModuleUnload", module)
    wrong = f"{KERNEL} of a module has {size} bytes of parameters, and 120 in the sources: build the module anew"
    assert driver.standin.report() == ([f"the kernel {wrong}"] if code == 218 else [])


class Products:
    """Calls cuBLAS for a product of column-major m × k and k × n matrices. A test may change arguments."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.blas, self.handle = driver, driver.standin.blas, c_void_p()
        assert self.blas.cublasCreate_v2(byref(self.handle)) == 0
        assert self.blas.cublasSetStream_v2(self.handle, driver.stream) == 0
        self.blocks = {name: driver.allocated(4 * 64) for name in "abc"}

    def multiply(self, **changed: Any) -> int:
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        values: dict[str, Any] = {
            "handle": self.handle, "transa": 0, "transb": 0, "m": 2, "n": 3, "k": 4, "alpha": byref(one),
            "a": self.blocks["a"], "a_kind": 0, "lda": 2, "stride_a": c_longlong(0), "b": self.blocks["b"], "b_kind": 0,
            "ldb": 4, "stride_b": c_longlong(0), "beta": byref(zero), "c": self.blocks["c"], "c_kind": 0, "ldc": 2,
            "stride_c": c_longlong(6), "batch": 1, "compute": 68, "algorithm": -1,
        }  # fmt: skip
        assert changed.keys() <= values.keys()
        code: int = self.blas.cublasGemmStridedBatchedEx(*{**values, **changed}.values())
        return code

    def close(self) -> None:
        assert self.blas.cublasDestroy_v2(self.handle) == 0
        for block in self.blocks.values():
            self.driver.free(block)


@pytest.fixture
def products(driver: Driver) -> Iterator[Products]:
    found = Products(driver)
    yield found
    found.close()


def test_products(products: Products, driver: Driver) -> None:
    rng = np.random.default_rng(1)
    shapes = [(2, 3, 4, 0, 0), (3, 2, 5, 1, 0), (5, 4, 3, 0, 1), (4, 4, 4, 1, 1), (1, 8, 8, 0, 0)]
    for m, n, k, transa, transb in shapes:
        a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        # Column-major; a transposed operand is row-major.
        driver.upload(products.blocks["a"], a.copy() if transa else a.T.copy())
        driver.upload(products.blocks["b"], b.copy() if transb else b.T.copy())
        found = np.zeros((n, m), np.float32)
        leading = {"lda": k if transa else m, "ldb": n if transb else k, "ldc": m}
        assert products.multiply(m=m, n=n, k=k, transa=transa, transb=transb, **leading) == 0
        driver.download(products.blocks["c"], found)
        np.testing.assert_allclose(found.T, a @ b, rtol=1e-6)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"lda": 1}, 7), ({"ldb": 3}, 7), ({"ldc": 1}, 7), ({"m": -1}, 7), ({"transa": 2}, 7), ({"batch": 65536}, 7),
        ({"transa": 1, "lda": 3}, 7), ({"a_kind": 1}, 15), ({"compute": 70}, 15), ({"compute": 74}, 15),
        ({"algorithm": 3}, 15), ({"c_kind": 2}, 15), ({"handle": c_void_p(5)}, 1),
    ],
)  # fmt: skip
def test_a_product_of_wrong_arguments_is_refused(changed: dict[str, Any], code: int, products: Products) -> None:
    assert products.multiply(**changed) == code


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"lda": 64}, "that are not in one block"),
        ({"n": 64}, "that are not in one block"),
        ({"batch": 2, "stride_c": c_longlong(3)}, "results that overlap each other"),
        ({"batch": 2, "stride_c": c_longlong(0)}, "results that overlap each other"),
        ({"c": "a"}, "a result that overlaps an operand"),
    ],
)
def test_a_product_of_wrong_memory_is_reported(changed: dict[str, Any], sentence: str, products: Products) -> None:
    changed = {name: products.blocks["a"] if value == "a" else value for name, value in changed.items()}
    assert products.multiply(**changed) == 0
    report = products.driver.standin.report()
    assert [line for line in report if sentence in line], report
    products.driver.wait()
    products.driver.standin.report()
    products.driver.standin.configure(CONFIGURATION)
