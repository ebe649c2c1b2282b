"""Faults of a GPU: each ends in an exception of the compiler with a sentence, and the next session works."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx.parser
import pytest

import compiler
from tests.standin import build, device
from tests.standin.sweep import MODEL, Sweeper

Swept = Callable[[str, int, int], list[dict[str, Any]]]

pytestmark = pytest.mark.skipif(device.reason() is not None, reason=str(device.reason()))

DRIVER = {
    "cuCtxGetCurrent", "cuCtxSetCurrent", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetCount",
    "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuEventCreate",
    "cuEventDestroy_v2", "cuInit", "cuLaunchKernel", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemFreeHost",
    "cuMemHostAlloc", "cuMemPoolCreate", "cuMemPoolDestroy", "cuMemPoolSetAttribute", "cuMemPoolTrimTo",
    "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuModuleGetFunction", "cuModuleLoadData", "cuModuleUnload",
    "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize",
}  # fmt: skip
BLAS = {
    "cublasCreate_v2", "cublasDestroy_v2", "cublasGemmStridedBatchedEx", "cublasSetMathMode", "cublasSetStream_v2",
}  # fmt: skip
GIVING_BACK = {
    "cuEventDestroy_v2", "cuMemFreeAsync", "cuMemFreeHost", "cuModuleUnload", "cuStreamDestroy_v2",
    "cuStreamSynchronize", "cublasDestroy_v2",
}  # fmt: skip
"""The functions whose failure leaks the resource that they should release."""
LEAK = re.compile("(the context is released|a pool is destroyed) while ")
SENTENCE = re.compile(r'^(DeviceError: device "cuda": |RunError: step \d+ \w+.*: )[^:].*', re.DOTALL)
"""The prefix of each failure's message: the device, or the step that detects the failure."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "small.plan"
    compiler.compile(onnx.parser.parse_model(MODEL)).save(path)
    return path


@pytest.fixture(scope="module")
def swept(plan: Path) -> Iterator[Swept]:
    """A function that runs the small plan while the call with each number fails, and returns the outcomes."""
    sweeper = Sweeper(plan)
    yield sweeper.run
    sweeper.end()


@pytest.fixture(scope="module")
def calls(swept: Swept) -> dict[str, int]:
    """The number of calls of each function by the small plan without failures."""
    (whole,) = swept("seed={}", 1, 1)
    assert (whole["found"], whole["report"]) == ("right", [])
    counts: dict[str, int] = whole["calls"]
    return counts


def test_every_function_that_is_called_is_known_here(calls: dict[str, int]) -> None:
    assert set(calls) == DRIVER | BLAS


def check(tries: list[dict[str, Any]], *, may_leak: bool = False) -> None:
    """Checks that each run is right or reports an error, that the next run is right, and that no misuse occurred."""
    for each in tries:
        assert each["found"] == "right" or SENTENCE.match(each["found"]), each
        assert each["then"] == "right", each
        misused = [line for line in each["report"] if not (may_leak and LEAK.match(line))]
        assert not misused, each


@pytest.mark.parametrize("symbol", sorted(DRIVER | BLAS))
def test_a_failing_call_is_reported(symbol: str, calls: dict[str, int], swept: Swept) -> None:
    code = 14 if symbol in BLAS else 999
    tries = swept(f"fail={symbol}:{{}}:{code}", 1, calls[symbol])
    assert len(tries) == calls[symbol]
    check(tries, may_leak=symbol in GIVING_BACK)


def test_an_allocation_that_fails_is_tried_again(calls: dict[str, int], swept: Swept) -> None:
    tries = swept("fail=cuMemAllocFromPoolAsync:{}:2", 1, calls["cuMemAllocFromPoolAsync"])
    check(tries)
    assert {each["found"] for each in tries} == {"right"}


def test_failing_allocations_are_reported(calls: dict[str, int], swept: Swept) -> None:
    tries = swept("fail=cuMemAllocFromPoolAsync:{}+:2", 1, calls["cuMemAllocFromPoolAsync"])
    check(tries)
    for each in tries:
        assert re.search(r": the device has no memory (for \d+ bytes more|left): free memory", each["found"]), each


@pytest.mark.parametrize(
    ("symbol", "code"),
    [("cuLaunchKernel", 2), ("cuStreamCreate", 2), ("cuDevicePrimaryCtxRetain", 2), ("cublasCreate_v2", 3)],
)
def test_every_library_reports_a_full_device(symbol: str, code: int, swept: Swept) -> None:
    (found,) = swept(f"fail={symbol}:1+:{code},seed={{}}", 1, 1)
    check([found])
    assert "the device has no memory left: free memory of the GPU" in found["found"], found


@pytest.mark.parametrize("capability", ["8.0", "8.6", "8.7", "8.9", "9.0", "10.3", "11.0", "12.0", "12.1", "13.0"])
def test_kernels_for_every_generation(capability: str, swept: Swept) -> None:
    # The stand-in refuses code of other generations. For generations without code in the module, it accepts PTX.
    (found,) = swept(f"capability={capability},seed={{}}", 1, 1)
    assert (found["found"], found["report"]) == ("right", [])


@pytest.mark.parametrize(
    ("capability", "has_code"),
    [("8.0", True), ("8.6", True), ("8.7", False), ("8.9", True), ("9.0", True), ("10.3", True), ("11.0", False),
     ("12.1", True), ("13.0", False)],
)  # fmt: skip
def test_a_generation_has_code_of_its_own(capability: str, has_code: bool, swept: Swept) -> None:
    (found,) = swept(f"capability={capability},jit=0,seed={{}}", 1, 1)
    if has_code:
        assert (found["found"], found["report"]) == ("right", [])
    else:
        assert re.search(r"the kernels of \w+ cannot be loaded: CUDA_ERROR_JIT_COMPILATION_DISABLED", found["found"])


def test_work_outside_of_the_pool_is_tried_again(swept: Swept) -> None:
    for symbol, code in (("cuModuleLoadData", 2), ("cuModuleGetFunction", 2), ("cublasGemmStridedBatchedEx", 3)):
        (found,) = swept(f"fail={symbol}:1:{code},seed={{}}", 1, 1)
        assert found["found"] == "right", found


def test_little_memory_is_reported_or_enough(plan: Path) -> None:
    # Failures of other tests may have kept memory.
    sweeper = Sweeper(plan)
    tries = sweeper.run("memory={}M", 1, 20)
    sweeper.end()
    check(tries)
    assert tries[-1]["found"] == "right"
    assert "the device has no" in tries[0]["found"]


@pytest.mark.parametrize("symbol", sorted(DRIVER | BLAS))
def test_a_lost_device_is_reported(symbol: str, calls: dict[str, int], swept: Swept) -> None:
    check(swept(f"lost={symbol}:{{}}:700", 1, calls[symbol]))


def test_a_crashing_kernel_is_reported(swept: Swept) -> None:
    tries = swept("crash={}", 1, 4)
    check(tries)
    # The call that waits for work reports its failure.
    assert [each["found"] == "right" for each in tries] == [False, False, False, True]


PLAN = """
import sys
import compiler
session = compiler.load(sys.argv[1], device=sys.argv[2])
"""


@pytest.mark.parametrize(
    ("configuration", "name", "said"),
    [
        ("", "cuda", ""),
        ("driver=12040", "cuda", "the driver is for CUDA 12.4, and 13.0 is needed: install NVIDIA's driver 580"),
        ("capability=7.5,name=Tesla T4", "cuda", "Tesla T4 has compute capability 7.5, and 8.0 is needed"),
        ("capability=8.0", "cuda", ""),
        ("capability=12.0", "cuda", ""),
        ("devices=2", "cuda:1", ""),
        ("", "cuda:1", "there is no GPU 1: the driver has one, number 0"),
        ("devices=2", "cuda:2", "there is no GPU 2: the driver has 0 to 1"),
        ("devices=0", "cuda", "the driver finds no GPU: see whether `nvidia-smi` lists one"),
        ("fail=cuInit:1:100", "cuda", "the driver finds no GPU: see whether `nvidia-smi` lists one"),
        ("fail=cuInit:1:999", "cuda", "the driver does not start (CUDA_ERROR_UNKNOWN"),
        ("fail=cuDevicePrimaryCtxRetain:1:2", "cuda", "the device has no memory left"),
    ],
)
def test_a_missing_part_is_reported(configuration: str, name: str, said: str, plan: Path) -> None:
    done = device.child(PLAN, configuration, plan, name)
    check_message(done, name, said)


def check_message(done: subprocess.CompletedProcess[str], name: str, said: str) -> None:
    """The child ended as it should, with the sentence as its last line."""
    if not said:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f'compiler.errors.DeviceError: device "{name}": {said}'), done.stderr


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("libcuda.so.1", "there is no NVIDIA driver on this machine (libcuda.so.1): install NVIDIA's driver 580"),
        ("libcublas.so.13", "libcublas.so.13 is not found: pip install 'candle-compiler[cuda]'"),
    ],
)
def test_a_missing_library_is_reported(missing: str, said: str, plan: Path, tmp_path: Path) -> None:
    for name in build.LIBRARIES:
        if missing not in (name, "libcuda.so.1"):
            (tmp_path / name).symlink_to(build.libraries() / name)
    check_message(device.child(PLAN, "", plan, "cuda", folder=tmp_path), "cuda", said)
    script = "import sys, compiler; print(compiler.load(sys.argv[1], device='auto').device)"
    done = device.child(script, "", plan, folder=tmp_path)
    assert done.stdout == "cpu\n", done.stderr


@pytest.mark.parametrize(
    ("symbol", "library"),
    [("cuMemAllocFromPoolAsync", "libcuda.so.1"), ("cublasSetMathMode", "libcublas.so.13")],
)
def test_a_missing_function_is_reported(symbol: str, library: str, plan: Path, tmp_path: Path) -> None:
    done = device.child(PLAN, "", plan, "cuda", folder=build.without(symbol, tmp_path))
    check_message(done, "cuda", f"{library} has no function {symbol}: install NVIDIA's driver 580")


FORK = """
import os, sys
import numpy as np
import compiler
session = compiler.load(sys.argv[1], device="cuda")
given = {"x": np.ones((2, 4), np.float32), "i": np.array([0])}
session.run(given)
child = os.fork()
if child == 0:
    for work in (lambda: session.run(given), lambda: compiler.load(sys.argv[1], device="cuda")):
        try:
            work()
        except compiler.DeviceError as error:
            print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
session.run(given)
print("right")
"""


def test_a_forked_process_gets_an_error(plan: Path) -> None:
    done = device.child(FORK, "", plan)
    said = 'device "cuda": a forked process cannot use the GPU of its parent: start it with `spawn`'
    assert done.stdout.splitlines() == [said, said, "right"], done.stderr
    assert done.returncode == 0, done.stderr


FORK_OF_OTHERS = """
import ctypes, os, sys
import compiler
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0  # as PyTorch may have done
child = os.fork()
if child == 0:
    try:
        compiler.load(sys.argv[1], device="cuda")
    except compiler.DeviceError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_process_whose_parent_started_the_driver_gets_an_error(plan: Path) -> None:
    done = device.child(FORK_OF_OTHERS, "", plan)
    said = 'device "cuda": a forked process cannot use the GPU of its parent: start it with `spawn`\n'
    assert (done.stdout, done.returncode) == (said, 0), done.stderr


OTHER_GPU = """
import ctypes, sys
import numpy as np
import compiler
driver, current = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
given = {"x": np.ones((2, 4), np.float32), "i": np.array([0])}
first = compiler.load(sys.argv[1], device="cuda")
first.run(given)
assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0
before = current.value
compiler.load(sys.argv[1], device="cuda:1").run(given)
assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0
assert before == current.value != None
"""


def test_the_threads_gpu_stays_what_it_was(plan: Path) -> None:
    done = device.child(OTHER_GPU, "devices=2", plan)
    assert done.returncode == 0, done.stderr
