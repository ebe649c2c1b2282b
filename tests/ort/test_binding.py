"""Bindings and values of `compiler.ort` behave like onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import compiler.ort
from tests.ort.both import ADD, add_inputs, assert_same, each_module, model, ramp
from tests.standin.device import StandIn

X = ramp(2, 3)
OrtValue = compiler.ort.OrtValue


def bound(module: Any, **options: Any) -> Any:
    """A session and a binding of both inputs."""
    session = module.InferenceSession(model(ADD), **options)
    binding = session.io_binding()
    for name, array in add_inputs().items():
        binding.bind_cpu_input(name, array)
    return session, binding


BINDINGS: dict[str, Callable[[Any, Any], Any]] = {
    "one output": lambda binding, module: binding.bind_output("w"),
    "outputs in another order": lambda binding, module: [binding.bind_output("w"), binding.bind_output("z")],
    "an output twice": lambda binding, module: [binding.bind_output(name) for name in ("w", "z", "w")],
    "no output": lambda binding, module: None,
    "an unknown output": lambda binding, module: binding.bind_output("v"),
    "an unknown device": lambda binding, module: binding.bind_output("w", "zork"),
    "an unknown input": lambda binding, module: binding.bind_cpu_input("q", X),
    "an input that is no array": lambda binding, module: binding.bind_cpu_input("x", X.tolist()),
    "an input with strides": lambda binding, module: [
        binding.bind_cpu_input("x", ramp(3, 2).T),
        binding.bind_output("w"),
    ],
    "an input of another type": lambda binding, module: [
        binding.bind_cpu_input("x", X.astype(np.float64)),
        binding.bind_output("w"),
    ],
    "an input of another rank": lambda binding, module: [
        binding.bind_cpu_input("x", ramp(2, 3, 1)),
        binding.bind_output("w"),
    ],
    "no input": lambda binding, module: [binding.clear_binding_inputs(), binding.bind_output("w")],
    "an address": lambda binding, module: [
        binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data),
        binding.bind_output("w"),
    ],
    "an address and a number of a type": lambda binding, module: [
        binding.bind_input("x", "cpu", 0, TensorProto.FLOAT, (2, 3), X.ctypes.data),
        binding.bind_output("w"),
    ],
    "a value": lambda binding, module: [
        binding.bind_ortvalue_input("x", module.OrtValue.ortvalue_from_numpy(X)),
        binding.bind_output("w"),
    ],
    "a buffer without a type": lambda binding, module: binding.bind_output("w", buffer_ptr=1),
    "cleared outputs": lambda binding, module: [binding.bind_output("w"), binding.clear_binding_outputs()],
}


@pytest.mark.parametrize("bind", BINDINGS.values(), ids=BINDINGS)
def test_bindings_are_taken_or_refused_alike(bind: Callable[[Any, Any], Any]) -> None:
    def run(module: Any) -> Any:
        session, binding = bound(module)
        bind(binding, module)
        session.run_with_iobinding(binding)
        values = binding.get_outputs()
        described = [(each.data_type(), each.shape(), each.device_name()) for each in values]
        return [*binding.copy_outputs_to_cpu(), *(each.numpy() for each in values), described]

    assert_same(run)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 3), (3, 3)], ids=str)
@pytest.mark.parametrize("by_address", [True, False])
def test_outputs_are_written_to_buffers(dtype: Any, shape: tuple[int, int], by_address: bool) -> None:
    def run(module: Any) -> Any:
        session, binding = bound(module)
        buffer = np.full(shape, 7, dtype)
        if by_address:
            binding.bind_output("w", "cpu", 0, dtype, shape, buffer.ctypes.data)
        else:
            binding.bind_ortvalue_output("w", module.OrtValue.ortvalue_from_numpy(buffer))
        try:
            session.run_with_iobinding(binding)
        except RuntimeError:
            assert module is not compiler.ort or (buffer == 7).all()
            raise
        assert np.shares_memory(binding.get_outputs()[0].numpy(), buffer)
        return buffer

    assert_same(run)


def test_no_buffer_changes_unless_all_fit() -> None:
    session, binding = bound(compiler.ort)
    first, second = np.full((2, 3), 7, np.float32), np.full((3, 3), 7, np.float32)
    binding.bind_ortvalue_output("z", OrtValue.ortvalue_from_numpy(first))
    binding.bind_ortvalue_output("w", OrtValue.ortvalue_from_numpy(second))
    with pytest.raises(RuntimeError, match=r"output 'w': expected float32 \[3, 3\], found float32 \[2, 3\]"):
        session.run_with_iobinding(binding)
    assert (first == 7).all()
    second.flags.writeable = False
    binding.bind_ortvalue_output("w", OrtValue.ortvalue_from_numpy(second[:2]))
    with pytest.raises(RuntimeError, match="output 'w': the array is read-only"):
        session.run_with_iobinding(binding)
    assert (first == 7).all()


def test_an_output_may_be_written_over_an_input() -> None:
    session, binding = bound(compiler.ort)
    x = X.copy()
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("z", OrtValue.ortvalue_from_numpy(x))
    binding.bind_output("w")
    session.run_with_iobinding(binding)
    assert x.tolist() == (2 * X).tolist()
    assert binding.copy_outputs_to_cpu()[1].tolist() == (-2 * X).tolist()


@each_module
def test_a_later_run_reads_the_same_memory_again(module: Any) -> None:
    session, binding = bound(module)
    x = X.copy()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    x[:] = 100
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == (X + 100).tolist()


def test_each_run_has_outputs_of_its_own() -> None:
    session, binding = bound(compiler.ort)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    before = binding.get_outputs()[0]
    for name in ("x", "y"):
        binding.bind_cpu_input(name, ramp(5, 3))
    session.run_with_iobinding(binding)
    assert (before.shape(), binding.get_outputs()[0].shape()) == ([2, 3], [5, 3])


def test_outputs_exist_after_a_run() -> None:
    _, binding = bound(compiler.ort)
    binding.bind_output("w")
    for read in (binding.get_outputs, binding.copy_outputs_to_cpu):
        with pytest.raises(RuntimeError, match="output 'w' has no value yet"):
            read()


def test_a_binding_belongs_to_its_session() -> None:
    assert_same(lambda module: module.InferenceSession(model(ADD)).run_with_iobinding(bound(module)[1]))


VALUES: dict[str, Callable[[Any], Any]] = {
    "an array": lambda made: made.ortvalue_from_numpy(X),
    "a view": lambda made: made.ortvalue_from_numpy(ramp(3, 2).T),
    "a list": lambda made: made.ortvalue_from_numpy([1, 2]),
    "a scalar": lambda made: made.ortvalue_from_numpy(np.array(1, np.int64)),
    "another type": lambda made: made.ortvalue_from_numpy_with_onnx_type(ramp(2, dtype=np.uint8), TensorProto.INT8),
    "DLPack": lambda made: made.from_dlpack(X),
    "no DLPack": lambda made: made.from_dlpack(3),
    "DLPack with strides": lambda made: made.from_dlpack(ramp(3, 2).T),
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_values_are_described_alike(make: Callable[[Any], Any]) -> None:
    def described(module: Any) -> Any:
        value = make(module.OrtValue)
        kinds = [value.is_tensor(), value.is_tensor_sequence(), value.is_sparse_tensor(), value.has_value()]
        texts = [value.data_type(), value.device_name(), value.element_type(), value.tensor_size_in_bytes()]
        arrays = [value.numpy(), np.asarray(value), np.asarray(value, np.float64), np.array(value)]
        assert value.data_ptr() == value.numpy().ctypes.data
        return [*kinds, *texts, value.shape(), *arrays, value.__dlpack_device__()]

    assert_same(described)


@pytest.mark.parametrize("kind", [np.float32, "int64", np.dtype("bool"), TensorProto.FLOAT16, np.object_], ids=str)
@pytest.mark.parametrize("shape", [[2, 3], (), (0,), (2, -3)], ids=str)
def test_values_are_made_of_shapes_and_types(kind: Any, shape: Any) -> None:
    try:
        value = OrtValue.ortvalue_from_shape_and_type(shape, kind)
    except (TypeError, ValueError):
        assert kind is np.object_ or -3 in shape
        return
    found = [value.data_type(), value.shape()]
    assert_same(
        lambda module: (
            found
            if module is compiler.ort
            else (lambda made: [made.data_type(), made.shape()])(
                module.OrtValue.ortvalue_from_shape_and_type(shape, kind)
            )
        )
    )


@each_module
def test_a_value_shares_the_memory_of_its_array(module: Any) -> None:
    array = X.copy()
    value = module.OrtValue.ortvalue_from_numpy(array)
    array[0, 0] = 9
    assert value.numpy()[0, 0] == np.from_dlpack(value)[0, 0] == 9
    value.update_inplace(np.ones((2, 3), np.float32))
    assert (array == 1).all()
    value.update_inplace(module.OrtValue.ortvalue_from_numpy(np.full((2, 3), 4, np.float32)))
    assert (array == 4).all()
    with pytest.raises(TypeError):
        value.update_inplace([1])
    with pytest.raises(RuntimeError):
        value.update_inplace(np.ones((3, 3), np.float32))


def test_elements_of_another_type_or_shape_are_not_copied() -> None:
    value = OrtValue.ortvalue_from_numpy(X.copy())
    for other in (X.astype(np.float64), X.T):
        with pytest.raises(RuntimeError, match=r"update_inplace: expected float32 \[2, 3\], found float"):
            value.update_inplace(other)


def test_values_hold_types_that_numpy_lacks() -> None:
    array = X.astype(ml_dtypes.bfloat16)
    assert OrtValue.ortvalue_from_numpy(array).data_type() == "tensor(bfloat16)"
    bits = array.view(np.uint16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.numpy().dtype == ml_dtypes.bfloat16
    assert value.data_ptr() == bits.ctypes.data
    with pytest.raises(RuntimeError, match="another width"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.FLOAT)
    with pytest.raises(TypeError, match="expected a type of numbers, found 14"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.COMPLEX64)


def test_sequences_and_empty_optionals_are_values() -> None:
    made = model("g (float[2] x) => (seq(float[2]) s) { s = SequenceConstruct (x, x) }")

    def described(module: Any) -> Any:
        session = module.InferenceSession(made)
        (value,) = session.run_with_ort_values(None, {"x": module.OrtValue.ortvalue_from_numpy(ramp(2))})
        for read in (value.shape, value.numpy, value.data_ptr, value.tensor_size_in_bytes):
            with pytest.raises(RuntimeError):
                read()
        return [value.is_tensor(), value.is_tensor_sequence(), value.has_value()]

    assert_same(described)
    optional = model("g (optional(float[2]) x) => (optional(float[2]) y) { y = Identity (x) }")
    (empty,) = compiler.ort.InferenceSession(optional).run_with_ort_values(None, {})
    assert (empty.has_value(), empty.data_type()) == (False, "optional(tensor(float))")


@pytest.mark.parametrize("feed", [{"x": 1}, {"x": X}, {"q": 1}], ids=str)
def test_only_values_are_run_with_values(feed: dict[str, Any]) -> None:
    session = compiler.ort.InferenceSession(model(ADD))
    with pytest.raises(TypeError, match="expected a dict of OrtValue by name, found"):
        session.run_with_ort_values(None, feed)


def test_outputs_stay_on_a_gpu(standin: StandIn) -> None:
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    session, binding = bound(compiler.ort, providers=providers)
    assert session.get_providers() == providers
    assert session.get_provider_options() == {"CUDAExecutionProvider": {"device_id": "0"}, "CPUExecutionProvider": {}}
    binding.bind_output("z", "cuda")
    binding.bind_output("w")
    session.run_with_iobinding(binding)
    kept, copied = binding.get_outputs()
    assert (kept.device_name(), copied.device_name()) == ("cuda", "cpu")
    assert (kept.data_type(), kept.element_type(), kept.shape(), kept.tensor_size_in_bytes()) == (
        *("tensor(float)", 1, [2, 3]),
        24,
    )
    assert kept.numpy().tolist() == np.asarray(kept).tolist() == (2 * X).tolist()
    assert copied.numpy().tolist() == (-2 * X).tolist()
    binding.bind_ortvalue_input("x", kept)
    binding.bind_input("y", "cuda", 0, np.float32, [2, 3], OrtValue.from_dlpack(kept.value).data_ptr())
    session.run_with_iobinding(binding)
    assert [array.tolist() for array in binding.copy_outputs_to_cpu()] == [(4 * X).tolist(), (-4 * X).tolist()]
    for call in (
        lambda: binding.bind_output("z", "cuda", 0, np.float32, (2, 3), kept.data_ptr()),
        lambda: binding.bind_ortvalue_output("z", kept),
        lambda: OrtValue.ortvalue_from_numpy(X, "cuda"),
        lambda: OrtValue.ortvalue_from_shape_and_type((2,), np.float32, "cuda"),
    ):
        with pytest.raises(NotImplementedError, match=r"from_dlpack|get_outputs"):
            call()
    with pytest.raises(RuntimeError, match="the tensor is on a GPU"):
        kept.update_inplace(X)
    with pytest.raises(RuntimeError, match="the session runs on cuda, not on cuda:1"):
        binding.bind_output("z", "cuda", 1)
    (plain, _) = session.run_with_ort_values(None, {"x": kept, "y": copied})
    assert plain.device_name() == "cpu"


def test_a_session_on_the_cpu_has_no_gpu() -> None:
    _, binding = bound(compiler.ort)
    with pytest.raises(RuntimeError, match="the session runs on cpu, not on cuda: pass providers"):
        binding.bind_output("w", "cuda")
