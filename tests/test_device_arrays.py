"""Tensors that stay on the device: as inputs and outputs of runs, and the copies and waits of a run."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from tests.standin.device import StandIn

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
ADD = HEADER + "g (float[n, m] x, float[n, m] y) => (float[n, m] sum) { sum = Add(x, y) }"
CHAIN = (
    HEADER
    + """g (float[n, m] x) => (float[n, m] a, float[n, m] b, int64[2] dims, float[k] c) {
    a = Relu(x)
    b = Neg(a)
    dims = Shape(x)
    flat = Constant <value_ints = [-1]> ()
    c = Reshape(b, flat)
}"""
)


def session(text: str, device: str, **options: Any) -> compiler.Session:
    return compiler.load(compiler.compile(onnx.parser.parse_model(text)), device=device, threads=1, **options)


def matrix(*dims: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


class Holder:
    """A tensor that offers `__cuda_array_interface__` alone."""

    def __init__(self, interface: dict[str, Any], owner: object = None) -> None:
        self.__cuda_array_interface__ = interface
        self.owner = owner


class Dlpack:
    """A tensor that supports only DLPack, in the old version if `is_old`."""

    def __init__(self, array: Any, is_old: bool = False) -> None:
        self.array, self.is_old, self.streams = array, is_old, list[int]()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.array.__dlpack_device__()
        return device

    def __dlpack__(self, *, stream: int, **options: Any) -> object:
        if self.is_old and options:
            raise TypeError("max_version")
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)


def lying(device: str, values: np.ndarray) -> Any:
    """An array on the device, made by a run."""
    copy = session(HEADER + "g (float[n, m] x) => (float[n, m] y) { y = Relu(x) }", device)
    return copy.run({"x": values}, device_outputs=True)["y"]


def test_outputs_stay_on_the_device(gpu: str) -> None:
    given = matrix(3, 5)
    chain = session(CHAIN, gpu)
    here, there = chain.run({"x": given}), chain.run({"x": given}, device_outputs=True)
    assert list(here) == list(there)
    for name, value in there.items():
        assert (value.device, value.shape, value.dtype) == (gpu, here[name].shape, here[name].dtype)
        assert np.array_equal(value.numpy(), here[name]) and np.array_equal(np.asarray(value), here[name])
    # Each output has separate memory, which outlives the session.
    del chain
    gc.collect()
    assert np.array_equal(there["c"].numpy(), there["b"].numpy().reshape(-1))
    assert "float32 [3, 5]" in repr(there["a"])


def test_inputs_on_the_device_are_not_written(gpu: str) -> None:
    x = lying(gpu, np.abs(matrix(4, 6)))
    before = x.numpy()
    # In a run of the same session, a step may write into an input that dies with the step.
    add = session(HEADER + "g (float[n, m] x) => (float[n, m] z) { y = Add(x, x) z = Neg(y) }", gpu)
    for _ in range(2):
        found = add.run({"x": x})["z"]
        assert np.array_equal(found, -2 * before) and np.array_equal(x.numpy(), before)
    # The run copies the elements that the host reads to the host.
    chain = session(CHAIN, gpu).run({"x": x})
    assert chain["dims"].tolist() == [4, 6] and np.array_equal(chain["a"], before)
    repeated = session(HEADER + "g (float[n, m] x, int64[1] s) => (float[k] y) { y = Reshape(x, s) }", gpu)
    assert np.array_equal(repeated.run({"x": x, "s": np.array([-1])})["y"], before.reshape(-1))


def test_an_input_is_given_back_in_memory_of_its_own(gpu: str) -> None:
    x = lying(gpu, np.abs(matrix(2, 3)))
    text = "g (float[n, m] x) => (float[n, m] y, float[n, m] z) { y = Identity(x) z = Identity(x) }"
    same = session(HEADER + text, gpu)
    found = same.run({"x": x}, device_outputs=True)
    assert all(np.array_equal(value.numpy(), x.numpy()) for value in found.values())
    if gpu == "cuda":
        places = {value.__cuda_array_interface__["data"][0] for value in (x, *found.values())}
        assert len(places) == 3


def test_an_input_that_another_session_made_is_given_back_whole(gpu: str) -> None:
    values = matrix(3, 4)
    text = """g (float[n, m] x, bool c) => (float[n, m] y) {
        y = If(c) <then_branch = t () => (float[n, m] o) { o = Identity(x) },
                   else_branch = e () => (float[n, m] o) { o = Neg(x) }>
    }"""
    given = {"x": lying(gpu, np.abs(values)), "c": np.array(True)}
    found = session(HEADER + text, gpu).run(given, device_outputs=True)["y"]
    negative = session(HEADER + "g (float[n, m] x) => (float[n, m] y) { y = Neg(x) }", gpu)
    assert np.array_equal(negative.run({"x": found})["y"], -np.abs(values))


def test_a_profile_takes_inputs_on_the_device(gpu: str) -> None:
    x = lying(gpu, matrix(3, 4))
    assert [step.op for step in session(ADD, gpu).profile({"x": x, "y": x}, 2) if step.host is None]


def test_a_wrong_input_on_the_device_is_an_error(gpu: str) -> None:
    x = lying(gpu, matrix(2, 3))
    with pytest.raises(compiler.InputError, match=r"float32 \[2, 3\]"):
        session(HEADER + "g (float[4] x) => (float[4] y) { y = Neg(x) }", gpu).run({"x": x})
    with pytest.raises(compiler.InputError):
        session(HEADER + "g (int64[n, m] x) => (int64[n, m] y) { y = Neg(x) }", gpu).run({"x": x})


def test_the_processor_is_its_own_host() -> None:
    found = session(CHAIN, "cpu").run({"x": matrix(2, 2)}, device_outputs=True)
    assert all(isinstance(value, np.ndarray) for value in found.values())


def interface(array: Any, **others: Any) -> dict[str, Any]:
    return {**array.__cuda_array_interface__, **others}


def test_tensors_of_other_libraries_are_inputs(standin: StandIn) -> None:
    values = np.abs(matrix(3, 4))
    x, y = lying("cuda", values), lying("cuda", values)
    add = session(ADD, "cuda")
    expected = values + values
    stream = ctypes.c_void_p()
    assert standin.driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    add.run({"x": x, "y": y})  # the first run of a session clears the word of its faults
    standin.configure("strict=1")
    for others in ({}, {"stream": stream.value}, {"strides": (16, 4)}):
        given = Holder(interface(x, **others))
        assert np.array_equal(add.run({"x": given, "y": y})["sum"], expected)
    old, new = Dlpack(x, is_old=True), Dlpack(x)
    assert np.array_equal(add.run({"x": old, "y": new})["sum"], expected)
    assert old.streams == new.streams != [0]
    # No element was uploaded. A run waits for the stream that an input names, and memory waits for its readers.
    calls = standin.calls()
    assert "cuMemcpyHtoDAsync_v2" not in calls and calls["cuStreamWaitEvent"] == 3, calls
    assert standin.driver.cuStreamDestroy_v2(stream) == 0


def test_gaps_and_turned_tensors_are_copied_on_the_device(standin: StandIn) -> None:
    values = np.abs(matrix(6, 4))
    x = lying("cuda", values)
    start, _ = x.__cuda_array_interface__["data"]
    add = session(ADD, "cuda")
    for view in (values.T, values[::2], values[1:, ::3], values[::-1], np.broadcast_to(values[2], (3, 4))):
        offset = view.__array_interface__["data"][0] - values.__array_interface__["data"][0]
        given = Holder(interface(x, shape=view.shape, strides=view.strides, data=(start + offset, True)))
        assert np.array_equal(add.run({"x": given, "y": np.zeros(view.shape, np.float32)})["sum"], view), view.strides


def test_an_owner_lives_until_the_work_is_done(standin: StandIn) -> None:
    values = np.abs(matrix(3, 4))
    deleted: list[str] = []

    class Owned(Holder):
        def __del__(self) -> None:
            deleted.append("owner")

    x = lying("cuda", values)
    add = session(ADD, "cuda")
    inputs = {"x": Owned(interface(x), owner=x), "y": values}
    del x
    found = add.run(inputs)["sum"]
    assert not deleted
    inputs.clear()
    gc.collect()
    assert deleted == ["owner"] and np.array_equal(found, values + values)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"typestr": "<c8"}, '"<c8" is not a supported element type'),
        ({"typestr": ">f4"}, "not a supported element type"),
        ({"mask": object()}, "has a mask"),
        ({"stream": 0}, "ambiguous"),
        ({"strides": (15, 4)}, "no whole number"),
        ({"strides": (4,)}, "has 1 strides"),
        ({"data": (64, False)}, "on no GPU"),
        ({"shape": (1 << 20, 4)}, "on no GPU"),
        ({"shape": None}, "has no shape"),
        ({"shape": (-1, 2)}, r"has the shape \(-1, 2\)"),
        ({"shape": "many"}, "has the shape 'many'"),
        ({"data": (5,)}, r"has the data \(5,\)"),
        ({"typestr": ""}, '"" is not a supported element type'),
        ({"typestr": "xf4"}, "xf4"),
        ({"version": "three"}, "has the version 'three'"),
        ({"stream": 2**70}, "has the stream"),
        ({"shape": (2**40, 2**40)}, "2\\^|2\\*\\*|elements|too many|large"),
    ],
)
def test_what_is_offered_wrongly_is_refused(standin: StandIn, changed: dict[str, Any], said: str) -> None:
    x = lying("cuda", matrix(3, 4))
    add = session(ADD, "cuda")
    with pytest.raises(compiler.InputError, match=said):
        add.run({"x": Holder(interface(x, **changed)), "y": matrix(3, 4)})


def test_an_interface_that_is_no_dict_is_refused(standin: StandIn) -> None:
    wrong: Any = None
    with pytest.raises(compiler.InputError, match="is not a dict"):
        session(ADD, "cuda").run({"x": Holder(wrong), "y": matrix(3, 4)})


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_tensors_of_a_gpu_are_refused_elsewhere(device: str, standin: StandIn) -> None:
    if device == "emulator":
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    x = lying("cuda", matrix(3, 4))
    add = session(ADD, device)
    for given in (Dlpack(x), Holder(interface(x))):
        with pytest.raises(
            compiler.InputError, match=f"a tensor on a GPU, and the session is on {device}: give a NumPy"
        ):
            add.run({"x": given, "y": matrix(3, 4)})


def test_tensors_of_the_host_come_by_dlpack(gpu: str) -> None:
    class OfHost:
        """An array that offers DLPack alone."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> object:
            return self.array.__dlpack__(**options)

    values = matrix(3, 4)
    for device in ("cpu", gpu):
        found = session(ADD, device).run({"x": OfHost(values), "y": values})["sum"]
        assert np.array_equal(found, values + values)


def test_failures_of_the_device_are_errors_of_the_device(standin: StandIn) -> None:
    x = lying("cuda", matrix(3, 4))
    add = session(ADD, "cuda")
    standin.configure("strict=1,fail=cuEventRecord:1:999")
    with pytest.raises(compiler.DeviceError, match='device "cuda": CUDA_ERROR_UNKNOWN'):
        add.run({"x": Holder(interface(x, stream=2)), "y": matrix(3, 4)})
    standin.configure("strict=1,fail=cuMemcpyDtoHAsync_v2:1:999")
    with pytest.raises(compiler.DeviceError, match='device "cuda": CUDA_ERROR_UNKNOWN'):
        x.numpy()


def test_a_tensor_of_another_gpu_is_an_error(standin: StandIn) -> None:
    class Other(Dlpack):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 1)

    with pytest.raises(compiler.InputError, match="a tensor on cuda:1, and the session is on cuda"):
        session(ADD, "cuda").run({"x": Other(lying("cuda", matrix(3, 4))), "y": matrix(3, 4)})


def test_memory_is_freed_after_the_work_of_its_consumer(standin: StandIn) -> None:
    values = np.abs(matrix(3, 4))
    x, target, stream = lying("cuda", values), lying("cuda", np.zeros((3, 4), np.float32)), ctypes.c_void_p()
    assert standin.driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    capsule = x.__dlpack__(stream=stream.value)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = ctypes.c_uint64.from_address(get_pointer(capsule, b"dltensor"))
    to = target.__cuda_array_interface__["data"][0]
    copy = standin.driver.cuMemcpyDtoDAsync_v2
    assert copy(ctypes.c_uint64(to), address, ctypes.c_size_t(values.nbytes), stream) == 0
    del capsule, x
    gc.collect()
    lying("cuda", np.ones((3, 4), np.float32))  # reuses the memory if it is free
    assert standin.driver.cuStreamSynchronize(stream) == 0
    assert np.array_equal(target.numpy(), values)
    assert standin.driver.cuStreamDestroy_v2(stream) == 0


def test_capsules_that_nobody_takes_are_freed(standin: StandIn) -> None:
    x = lying("cuda", matrix(3, 4))
    for _ in range(3):
        assert "dltensor" in repr(x.__dlpack__())
    assert x.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=True)


def test_a_run_waits_once(standin: StandIn) -> None:
    values = matrix(64, 64)
    chain = session(CHAIN, "cuda")
    chain.run({"x": values})
    standin.configure("strict=1")
    found = chain.run({"x": values})
    calls = standin.calls()
    assert calls["cuStreamSynchronize"] == 1 and "cuEventSynchronize" not in calls, calls
    assert np.array_equal(found["c"], -np.maximum(values, 0).reshape(-1))


def test_a_view_of_an_input_stays_on_the_device(standin: StandIn) -> None:
    values = np.abs(matrix(4, 6))
    x = lying("cuda", values)
    text = """g (float[n, m] x, int64[2] s) => (float[k, l] y, float[k, l] z) {
        same = Identity(x)
        y = Reshape(same, s)
        z = Neg(y)
    }"""
    viewed = session(HEADER + text, "cuda")
    standin.configure("")
    found = viewed.run({"x": x, "s": np.array([3, -1])}, device_outputs=True)
    # Only the mark with which kernels report faults is copied, once in each direction; no tensor is.
    calls = standin.calls()
    assert calls["cuMemcpyHtoDAsync_v2"] == calls["cuMemcpyDtoHAsync_v2"] == 1, calls
    assert np.array_equal(found["y"].numpy(), values.reshape(3, 8)) and np.array_equal(x.numpy(), values)
    assert np.array_equal(found["z"].numpy(), -values.reshape(3, 8))


@pytest.mark.parametrize("configuration", ["upload=late,download=late", "strict=1", "fail=cuMemHostAlloc:1:2,strict=1"])
def test_large_tensors_go_through_the_staging_buffer(standin: StandIn, configuration: str) -> None:
    standin.configure(configuration)
    sizes = [(1, 1), (700, 1000), (1500, 1000), (3000, 1000), (1024, 1024), (1, 262144), (1, 262145)]
    chain = session(CHAIN, "cuda")
    for size in sizes:
        values = matrix(*size)
        found = chain.run({"x": values})
        assert np.array_equal(found["a"], np.maximum(values, 0)), size
        assert np.array_equal(found["b"], -found["a"]) and np.array_equal(found["c"], found["b"].reshape(-1)), size
