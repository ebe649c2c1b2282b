"""Models with constant weights, and their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import compiler
from compiler.rewrite.report import PassReport

Array = np.ndarray[Any, Any]
Compiled = Callable[..., tuple[compiler.Plan, PassReport]]
"""Compiles a model, and returns the plan and the report of the pass."""

PRODUCTS = {
    "MatMul": ("(float[n, 48] x) => (float[n, 40] y) { y = MatMul(x, w) }", [48, 40]),
    "MatMul of one row": ("(float[1, 48] x) => (float[1, 40] y) { y = MatMul(x, w) }", [48, 40]),
    "MatMul of a vector": ("(float[48] x) => (float[40] y) { y = MatMul(x, w) }", [48, 40]),
    "MatMul of a batch": ("(float[n, 3, 48] x) => (float[n, 3, 40] y) { y = MatMul(x, w) }", [48, 40]),
    "transposed MatMul": ("(float[n, 48] x) => (float[n, 40] y) { t = Transpose(w) y = MatMul(x, t) }", [40, 48]),
    "odd depth": ("(float[n, 51] x) => (float[n, 40] y) { y = MatMul(x, w) }", [51, 40]),
    "Gemm": ("(float[n, 48] x, float[40] c) => (float[n, 40] y) { y = Gemm<transB = 1>(x, w, c) }", [40, 48]),
    "Gemm without addend": ("(float[n, 48] x) => (float[n, 40] y) { y = Gemm(x, w) }", [48, 40]),
}
"""Products with a constant operand `w`: the graph of each, and the shape of `w`."""


def model_of(text: str, **weights: Array) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def half_product() -> onnx.ModelProto:
    """A product in float16."""
    text = "(float16[n, 48] x) => (float16[n, 48] y) { y = MatMul(x, w) }"
    return model_of(text, w=normal(48, 48).astype(np.float16))


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def inputs_of(plan: compiler.Plan) -> dict[str, Array]:
    given = {}
    for each in compiler.load(plan).inputs:
        shape = [5 if not isinstance(size, int) else size for size in each.shape or ()]
        given[each.name] = (
            normal(*shape, seed=1) if each.dtype == "float32" else np.arange(np.prod(shape)).reshape(shape)
        )
    return given


def ops_of(plan: compiler.Plan) -> list[str]:
    return [next(iter(step["op"])) for step in plan.document["main"]["steps"]]


def assert_stay(compiled: Compiled, *cases: tuple[onnx.ModelProto, str]) -> None:
    """Each model's only product stays, for its reason."""
    for model, reason in cases:
        plan, report = compiled(model)
        assert ops_of(plan) == ["MatMul"]
        assert [reason in each.reason for each in report.near_misses] == [True]


def assert_unknown_name_is_refused(compiled: Compiled) -> None:
    text, shape = PRODUCTS["MatMul"]
    with pytest.raises(compiler.CompileError, match=r"CC0407.*no weight has the name 'lm_head'"):
        compiled(model_of(text, w=normal(*shape)), keep=["lm_head"])
