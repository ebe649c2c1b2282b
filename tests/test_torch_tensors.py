"""PyTorch tensors as inputs and outputs of sessions on the CPU, without copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import compiler
from compiler.runtime.libraries import converted

torch = pytest.importorskip("torch", reason="needs PyTorch")

TYPES = {
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.INT64: "int64",
    TensorProto.INT32: "int32",
    TensorProto.INT16: "int16",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
    TensorProto.BOOL: "bool",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
}
LARGE = (64, 96)
"""A shape so large that a run uses the tensor's memory instead of a copy."""


def session(element: int, operator: str = "Identity") -> compiler.Session:
    x, y = (helper.make_tensor_value_info(name, element, [None, None]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    return compiler.load(compiler.compile(model), threads=1)


def bits(tensor: Any) -> bytes:
    """The bytes of the elements in order."""
    return bytes(tensor.flatten().view(torch.uint8).numpy().tobytes()) if tensor.numel() else b""


def sample(dtype: str, shape: tuple[int, ...] = LARGE) -> Any:
    values = torch.arange(int(np.prod(shape))).reshape(shape) % 2
    return values.to(torch.float32).to(getattr(torch, dtype))


@pytest.mark.parametrize(("element", "dtype"), TYPES.items(), ids=TYPES.values())
@pytest.mark.parametrize("shape", [LARGE, (2, 3), (0, 3), (1, 1)], ids=str)
def test_every_dtype_passes(element: int, dtype: str, shape: tuple[int, ...]) -> None:
    given = sample(dtype, shape)
    found = session(element).run({"x": given}, as_="torch")["y"]
    assert (found.dtype, tuple(found.shape)) == (given.dtype, shape)
    assert bits(found) == bits(given)


VIEWS = {
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[::2, 1::3],
    "a column": lambda x: x[:, 5:6],
    "rows": lambda x: x[3:40],
    "expanded": lambda x: x[:1].expand(7, -1),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("copy", [False, True])
def test_views_pass(view: str, dtype: str, copy: bool) -> None:
    element = next(each for each, name in TYPES.items() if name == dtype)
    given = VIEWS[view](torch.arange(64 * 96).reshape(LARGE).to(getattr(torch, dtype)))
    found = session(element).run({"x": given}, copy=copy, as_="torch")["y"]
    assert torch.equal(found, given)


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize("copy", [False, True])
def test_a_pending_negation_is_applied(rows: int, copy: bool) -> None:
    given = torch.complex(torch.ones(rows, 96), torch.arange(rows * 96.0).reshape(rows, 96)).conj().imag
    assert given.is_neg()
    found = session(TensorProto.FLOAT).run({"x": given}, copy=copy, as_="torch")["y"]
    assert torch.equal(found, given.resolve_neg())


def test_inputs_are_not_copied() -> None:
    """The memory limit counts a copy, but not the caller's memory."""
    text = "(float[64, 96] x) => (float[1, 1] y) { y = ReduceMax (x) }"
    plan = compiler.compile(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> m {text}'))
    given = torch.arange(64 * 96, dtype=torch.float32).reshape(LARGE)
    limited = compiler.load(plan, threads=1, max_memory=given.nbytes - 1)
    assert limited.run({"x": given}, as_="torch")["y"].item() == given.max().item()
    with pytest.raises(compiler.RunError, match="max_memory"):
        limited.run({"x": given}, copy=True)


def test_outputs_are_not_copied() -> None:
    arrays = session(TensorProto.FLOAT, "Neg").run({"x": np.ones(LARGE, np.float32)})
    shared = converted(arrays, "torch")["y"]
    assert shared.data_ptr() == arrays["y"].ctypes.data


def test_the_tensor_lives_as_long_as_an_output_that_shares_it() -> None:
    made = session(TensorProto.FLOAT)
    found = made.run({"x": torch.full(LARGE, 3.0)})["y"]  # the caller keeps no reference to the input
    assert (found == 3).all()


def test_wrong_tensors_are_refused() -> None:
    made = session(TensorProto.FLOAT, "Neg")
    with pytest.raises((compiler.InputError, RuntimeError), match=r"requires a gradient"):
        made.run({"x": torch.ones(LARGE, requires_grad=True)})
    with pytest.raises(compiler.InputError, match=r"float32.*bfloat16"):
        made.run({"x": sample("bfloat16")})
    with pytest.raises(ValueError, match="as_: expected 'numpy', 'torch', 'dlpack', found 'jax'"):
        made.run({"x": torch.ones(LARGE)}, as_="jax")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="output y: elements of int4 come only as a NumPy array: leave out as_"):
        session(TensorProto.INT4).run({"x": np.ones((1, 2), "int8").astype("int4")}, as_="torch")


def test_strings_stay_arrays() -> None:
    found = session(TensorProto.STRING).run({"x": np.array([["a"]], object)}, as_="torch")["y"]
    assert found.tolist() == [["a"]]
