"""Inputs are read where they lie, and outputs stay where the runtime computed them: tests compare addresses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import compiler

SHAPE = (64, 96)
"""So large that a run does not copy the elements."""
ELEMENTS = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "float16": TensorProto.FLOAT16,
    "bool": TensorProto.BOOL,
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
}


def reversing(dtype: str) -> compiler.Session:
    """A session that transposes its input."""
    x, y = (helper.make_tensor_value_info(name, ELEMENTS[dtype], [None, None]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"])], "turned", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    return compiler.load(compiler.compile(model), threads=1)


def sample(dtype: str) -> np.ndarray[Any, Any]:
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    return (np.arange(np.prod(SHAPE)) % 2).reshape(SHAPE).astype(kind)


def start(array: Any) -> int:
    return int(array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data_ptr())


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_numpy_arrays(dtype: str) -> None:
    session, given = reversing(dtype), sample(dtype)
    [read], [(written, y)] = session._runtime.addresses({"x": given})
    assert read == start(given)
    assert written == start(y)
    assert (y == given.T).all()


def test_small_and_other_arrays_are_copied() -> None:
    session = reversing("float32")
    for given in (np.ones((2, 3), np.float32), sample("float32")[:, ::2], sample("float32").T):
        [read], [(_, y)] = session._runtime.addresses({"x": given})
        assert read not in range(start(given), start(given) + given.nbytes)
        assert (y == given.T).all()


def test_arrays_of_the_caller_stay_where_they_are() -> None:
    session, given, place = reversing("float32"), sample("float32"), np.zeros(SHAPE[::-1], np.float32)
    before = start(place)
    found = session.run({"x": given}, out={"y": place})["y"]
    assert found is place and start(found) == before
    assert (place == given.T).all()


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for dtype in ELEMENTS:
        session = reversing(dtype)
        given = torch.from_numpy(sample(dtype).astype(np.float32)).to(getattr(torch, dtype))
        [read], [(written, y)] = session._runtime.addresses({"x": given})
        assert (read, written) == (start(given), start(y)), dtype
        arrays = {"y": y}
        assert start(compiler.runtime.libraries.converted(arrays, "torch")["y"]) == written
        found = session.run({"x": given}, as_="torch")["y"]
        assert torch.equal(found.view(torch.uint8), given.T.contiguous().view(torch.uint8))


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_tensors_of_dlpack(dtype: str) -> None:
    session, given = reversing(dtype), sample(dtype)
    y = session.run({"x": given}, as_="dlpack")["y"]
    assert (y.shape, y.dtype, y.device) == (SHAPE[::-1], given.dtype, "cpu")
    assert y.__dlpack_device__() == (1, 0)
    [read], _ = session._runtime.addresses({"x": y})
    assert read == start(y.numpy())
    assert (session.run({"x": y})["y"] == given).all()
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensor = torch.from_dlpack(y)
    assert start(tensor) == start(y.numpy())
    assert str(tensor.dtype) == f"torch.{dtype}"


def test_the_memory_lives_as_long_as_its_last_user() -> None:
    session = reversing("float32")
    tensor = session.run({"x": np.full(SHAPE, 3, np.float32)}, as_="dlpack")["y"]
    array = np.from_dlpack(tensor)
    assert start(array) == start(tensor.numpy())
    del tensor
    session.run({"x": np.zeros(SHAPE, np.float32)})
    assert (array == 3).all()
    assert "dltensor" in repr(session.run({"x": array}, as_="dlpack")["y"].__dlpack__())  # nobody takes the capsule


def test_what_dlpack_lacks_is_refused() -> None:
    text = "(int4[n] x, string[n] s) => (int4[n] y, string[n] t) { y = Identity (x) t = Identity (s) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    session = compiler.load(compiler.compile(model), threads=1)
    inputs = {"x": np.zeros(2, ml_dtypes.int4), "s": np.array(["a", "b"], object)}
    with pytest.raises(TypeError, match="output y: elements of int4 come only as a NumPy array: leave out as_"):
        session.run(inputs, as_="dlpack")
    found = session.run(inputs, ["t"], as_="dlpack")["t"]
    assert found.tolist() == ["a", "b"]
    y = reversing("float32").run({"x": sample("float32")}, as_="dlpack")["y"]
    for options in ({"copy": True}, {"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError, match=r"call numpy\(\)\.copy\(\)"):
            y.__dlpack__(**options)
    assert (np.asarray(y) == sample("float32").T).all()
    assert repr(y) == "HostTensor(float32 [96, 64])"
