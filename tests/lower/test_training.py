"""Optimizers of the domain `ai.onnx.preview.training`, compared with their formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import compiler
from tests.scratch.row import rows

DOMAIN = "ai.onnx.preview.training"
Arrays = list[np.ndarray[Any, Any]]
RATE, SIZES = 0.1, [(3,), (2, 4)]


def model(op_type: str, lists: int, dtype: int, outputs: int | None = None, **attributes: Any) -> onnx.ModelProto:
    """A model of one optimizer with two tensors, and `lists` lists of inputs."""
    tensors = [(f"{name}{at}", size) for name in "XGVH"[:lists] for at, size in enumerate(SIZES)]
    made = [f"Y{at}" for at in range(2 * (lists - 1) if outputs is None else outputs)]
    node = helper.make_node(op_type, ["R", "T", *(name for name, _ in tensors)], made, domain=DOMAIN, **attributes)
    inputs = [helper.make_tensor_value_info("R", dtype, []), helper.make_tensor_value_info("T", TensorProto.INT64, [])]
    inputs += [helper.make_tensor_value_info(name, dtype, size) for name, size in tensors]
    outs = [helper.make_tensor_value_info(name, dtype, SIZES[at % 2]) for at, name in enumerate(made)]
    graph = helper.make_graph([node], "step", inputs, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)])


def adagrad(steps: int, x: Any, g: Any, h: Any) -> Arrays:
    g = 0.01 * x + g
    h = h + g * g
    return [x - RATE / (1 + steps * 0.2) * g / (np.sqrt(h) + 1e-3), h]


def adam(steps: int, x: Any, g: Any, v: Any, h: Any) -> Arrays:
    g = 0.01 * x + g
    v, h = 0.8 * v + 0.2 * g, 0.95 * h + 0.05 * g * g
    rate = RATE * np.sqrt(1 - 0.95**steps) / (1 - 0.8**steps) if steps > 0 else RATE
    return [(1 - 0.02) * (x - rate * v / (np.sqrt(h) + 1e-3)), v, h]


def momentum(steps: int, x: Any, g: Any, v: Any) -> Arrays:
    g = 0.01 * x + g
    v = 0.8 * v + (0.3 if steps > 0 else 1) * g
    return [x - RATE * v, v]


def nesterov(steps: int, x: Any, g: Any, v: Any) -> Arrays:
    g = 0.01 * x + g
    v = 0.8 * v + (0.3 if steps > 0 else 1) * g
    return [x - RATE * (g + 0.8 * v), v]


MOMENTUM = {"alpha": 0.8, "beta": 0.3, "norm_coefficient": 0.01}
OPTIMIZERS: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "Adagrad": (adagrad, "Adagrad", 3, {"decay_factor": 0.2, "epsilon": 1e-3, "norm_coefficient": 0.01}),
    "Adam": (
        adam,
        "Adam",
        4,
        {"alpha": 0.8, "beta": 0.95, "epsilon": 1e-3, "norm_coefficient": 0.01, "norm_coefficient_post": 0.02},
    ),
    "Momentum": (momentum, "Momentum", 3, MOMENTUM | {"mode": "standard"}),
    "Momentum of Nesterov": (nesterov, "Momentum", 3, MOMENTUM | {"mode": "nesterov"}),
}


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers(name: str, dtype: str, steps: int) -> None:
    formula, op_type, lists, attributes = OPTIMIZERS[name]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    plan = compiler.compile(model(op_type, lists, kind, **attributes))
    random = np.random.default_rng(0)
    given = {f"{letter}{at}": random.random(size) for letter in "XGVH"[:lists] for at, size in enumerate(SIZES)}
    inputs = {key: array.astype(dtype) for key, array in given.items()}
    found = compiler.load(plan, threads=1).run({"R": np.array(RATE, dtype), "T": np.array(steps), **inputs})
    wanted = [formula(steps, *(given[f"{letter}{at}"] for letter in "XGVH"[:lists])) for at in range(2)]
    for at, array in enumerate(array for each in zip(*wanted, strict=True) for array in each):
        assert found[f"Y{at}"].dtype == dtype
        # The attributes have single precision.
        np.testing.assert_allclose(found[f"Y{at}"], array, rtol=2e-6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "heavy"}, "Momentum has no mode 'heavy'"),
        ({"outputs": 3}, "Momentum needs 3 inputs and 2 outputs for each tensor, found 6 tensors and 3 outputs"),
    ],
)
def test_refused_optimizers(changes: dict[str, Any], said: str) -> None:
    made = model("Momentum", 3, TensorProto.FLOAT, **(MOMENTUM | {"mode": "standard"} | changes))
    with pytest.raises(compiler.CompileError, match=said):
        compiler.compile(made)


_STEP = "T[] r, int64[] t, T[n, m] x, T[n, m] g, T[n, m] v"
SCRATCH = [
    *rows("float double", _STEP, "y, w = ai.onnx.preview.training.Adagrad(r, t, x, g, v)"),
    *rows("float double", f"{_STEP}, T[n, m] h", "y, w, k = ai.onnx.preview.training.Adam(r, t, x, g, v, h)"),
    *rows(
        "float double",
        _STEP,
        'y, w = ai.onnx.preview.training.Momentum<alpha = 0.5, beta = 0.5, norm_coefficient = 0.0, mode = "OP">'
        "(r, t, x, g, v)",
        "standard nesterov",
    ),
]
