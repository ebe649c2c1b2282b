"""Arrays of the caller that outputs are copied into: the argument `out` of a run."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler.runtime.libraries import validate_places

TEXT = "two (float[n, 3] x) => (float[n, 3] double, int64[2] size) { double = Add(x, x) size = Shape(x) }"


def loaded() -> compiler.Session:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {TEXT}')
    return compiler.load(compiler.compile(model), threads=1)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_outputs_are_copied_into_arrays() -> None:
    rows = np.zeros((2, 6), np.float32)
    double = rows[:, ::2]  # elements with gaps
    outputs = loaded().run({"x": X}, out={"double": double})
    assert outputs["double"] is double
    assert list(outputs) == ["double", "size"]
    assert (double == X + X).all()
    assert (rows[:, 1::2] == 0).all()
    assert outputs["size"].tolist() == [2, 3]


def test_an_input_can_be_the_array_of_an_output() -> None:
    session, values = loaded(), X.copy()
    for _ in range(3):
        session.run({"x": values}, outputs=["double"], out={"double": values})
    assert (values == 8 * X).all()


def test_a_coroutine_and_a_call_take_arrays() -> None:
    session, array = loaded(), np.zeros((2, 3), np.float32)
    assert asyncio.run(session.run_async({"x": X}, out={"double": array}))["double"] is array
    assert (array == X + X).all()
    assert session(2 * X, outputs=["double"], out={"double": array}) is array
    assert (array == 4 * X).all()


def read_only() -> np.ndarray[Any, Any]:
    array = np.zeros((2, 3), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "said"),
    [
        ({"double": np.zeros((3, 2), np.float32)}, ValueError, r"shape \[2, 3\], but its array has \[3, 2\]"),
        ({"double": np.zeros((2, 3), np.float64)}, TypeError, "dtype float32, but its array has float64"),
        ({"other": np.zeros((2, 3), np.float32)}, ValueError, "expected some of double, size, found 'other'"),
        ({"double": read_only()}, ValueError, "read-only"),
        ({"double": [[0.0] * 3] * 2}, TypeError, "expected a NumPy array or a PyTorch tensor on the CPU"),
        ([np.zeros((2, 3), np.float32)], TypeError, "out: expected a dict of arrays by name, found list"),
    ],
)
def test_an_unsuitable_array_is_refused_and_none_is_written(out: Any, error: type[Exception], said: str) -> None:
    size = np.zeros(2, np.int64)
    with pytest.raises(error, match=said):
        loaded().run({"x": X}, out={"size": size, **out} if isinstance(out, dict) else out)
    assert (size == 0).all()


def overlapping() -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of two outputs that share memory, and those of alternate elements, which do not."""
    bytes_ = np.zeros(32, np.uint8)
    double, pairs = bytes_[:24].view(np.float32).reshape(2, 3), np.zeros((2, 3, 2), np.float32)
    return {"double": double, "size": bytes_[16:].view(np.int64)}, {"double": pairs[..., 0], "other": pairs[..., 1]}


def test_arrays_that_share_memory_are_refused() -> None:
    shared, apart = overlapping()
    with pytest.raises(ValueError, match="the arrays of 'double' and 'size' share memory: give each output its own"):
        loaded().run({"x": X}, out=shared)
    assert not shared["size"].any()
    validate_places(apart, apart)


def test_tensors_that_share_memory_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    shared, apart = overlapping()
    with pytest.raises(ValueError, match="share memory"):
        loaded().run({"x": X}, out={**shared, "double": torch.from_numpy(shared["double"])})
    validate_places({name: torch.from_numpy(place) for name, place in apart.items()}, apart)


def test_an_output_that_is_not_computed_has_no_array() -> None:
    with pytest.raises(ValueError, match="expected some of size, found 'double'"):
        loaded().run({"x": X}, outputs=["size"], out={"double": np.zeros((2, 3), np.float32)})


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensor = torch.zeros(3, 2).T
    outputs = loaded().run({"x": torch.from_numpy(X)}, as_="torch", out={"double": tensor})
    assert outputs["double"] is tensor
    assert (tensor.numpy() == X + X).all()
    assert isinstance(outputs["size"], torch.Tensor)
    with pytest.raises(TypeError, match="needs no gradient"):
        loaded().run({"x": X}, out={"double": torch.zeros(2, 3, requires_grad=True)})
    with pytest.raises(TypeError, match=r"dtype torch.float32, but its array has torch.float64"):
        loaded().run({"x": X}, out={"double": torch.zeros(2, 3, dtype=torch.float64)})
