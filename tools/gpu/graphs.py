"""Small models: one for every path of the backend, and models for the checks of the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx.parser

import compiler
from gpu.files import Model

HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '
VALUES = ", ".join(f"v{number}" for number in range(48))
"""Enough values to fill the memory of any GPU."""

SMALL = {
    "softmax": "(float[n, m] x) => (float[n, m] y) { y = Softmax(x) }",
    "topk": "(float[n, m] x, int64[1] k) => (float[n, p] y, int64[n, p] i) { y, i = TopK(x, k) }",
    "conv": "(float[1, 16, 20, 20] x, float[8, 16, 3, 3] w) => (float[1, 8, 18, 18] y) { y = Conv(x, w) }",
    "gather": "(float[n, m] x, int64[p] places) => (float[p, m] y) { z = Add(x, x) y = Gather(z, places) }",
    "expand": "(float[1] x, int64[1] shape) => (float[n] y) { y = Expand(x, shape) }",
    "fill": f"""(double[1] x, int64[1] shape) => (double[n] y) {{
        {" ".join(f"{value} = Expand(x, shape)" for value in VALUES.split(", "))} y = Concat<axis = 0>({VALUES})
    }}""",
    "cache": """(float[2, 1, 4] x, float[2, past, 4] past_x) => (float[2, 1, total] y, float[2, total, 4] present_x) {
        present_x = Concat<axis = 1>(past_x, x) t = Transpose<perm = [0, 2, 1]>(present_x) y = MatMul(x, t)
    }""",
}
"""Models for the checks of the device. The first one's plan opens the device."""

PATHS = {
    "elementwise": """(float[n, m] x, float[m] b) => (float[n, m] y) {
        s = Add(x, b) t = Sigmoid(s) y = Mul(s, t)
    }""",
    "product": "(float[n, k] a, float[k, m] b) => (float[n, m] y) { y = MatMul(a, b) }",
    "products of a batch": """(float[h, n, k] a, float[h, m, k] b) => (float[h, n, m] y) {
        t = Transpose<perm = [0, 2, 1]>(b) y = MatMul(a, t)
    }""",
    "product with an addend": """(float[n, k] a, float[k, m] b, float[m] c) => (float[n, m] y) {
        y = Gemm<alpha = 0.5, beta = 2.0>(a, b, c)
    }""",
    "product in half": "(float16[n, k] a, float16[k, m] b) => (float16[n, m] y) { y = MatMul(a, b) }",
    "product in double": "(double[n, k] a, double[k, m] b) => (double[n, m] y) { y = MatMul(a, b) }",
    "convolution, 1×1": "(float[2, 32, 20, 20] x, float[48, 32, 1, 1] w) => (float y) { y = Conv(x, w) }",
    "convolution, tiles": """(float[2, 32, 20, 20] x, float[48, 32, 3, 3] w) => (float y) {
        y = Conv<pads = [1, 1, 1, 1]>(x, w)
    }""",
    "convolution, direct": "(float[2, 32, 20, 20] x, float[32, 1, 3, 3] w) => (float y) { y = Conv<group = 32>(x, w) }",
    "convolution, transposed": """(float[2, 32, 20, 20] x, float[32, 8, 4, 4] w) => (float y) {
        y = ConvTranspose<strides = [2, 2]>(x, w)
    }""",
    "attention": """(float[2, 4, 33, 16] q, float[2, 4, 33, 16] k, float[2, 4, 33, 16] v) => (float y) {
        y = Attention(q, k, v)
    }""",
    "recurrent": """(float[7, 2, 5] x, float[1, 24, 5] w, float[1, 24, 6] r) => (float y, float h) {
        y, h = LSTM<hidden_size = 6>(x, w, r)
    }""",
    "integers": """(uint8[n, k] a, int8[k, m] b) => (int32[n, m] y) { y = MatMulInteger(a, b) }""",
    "reductions": """(float[n, m] x) => (float[n, m] y, int64[n, 1] i) {
        axis = Constant<value_int = 1>() s = Softmax(x) i = ArgMax<axis = 1>(s) y = CumSum(s, axis)
    }""",
    "host steps": """(float[n, m] x) => (float[k] y) {
        s = Shape(x) p = ReduceProd<keepdims = 1>(s) z = Add(x, x) y = Reshape(z, p)
    }""",
    "a branch": """(float[n, m] x, bool c) => (float[n, m] y) {
        y = If(c) <then_branch = g1 () => (float[n, m] t) { t = Add(x, x) },
                   else_branch = g2 () => (float[n, m] e) { e = Mul(x, x) }>
    }""",
    "a loop": """(float[n, m] x, int64 count, bool on) => (float[n, m] y) {
        y = Loop(count, on, x) <body = b (int64 i, bool c, float[n, m] z) => (bool d, float[n, m] w) {
            d = Identity(c) w = Add(z, x)
        }>
    }""",
}
"""Models for the paths of the backend."""


def small() -> Iterator[Model]:
    """Plans of `SMALL`, without optimization."""
    x, shape = np.random.default_rng(0).standard_normal((1, 16, 20, 20), np.float32), np.array([3])
    rows, one = x.reshape(16, 400)[:4], np.ones(1, np.float32)
    cases: dict[str, dict[str, Any]] = {
        "softmax": {"x": rows},
        "topk": {"x": rows, "k": np.array([7])},
        "conv": {"x": x, "w": np.random.default_rng(1).standard_normal((8, 16, 3, 3), np.float32)},
        "gather": {"x": rows, "places": np.array([0, -1, 2])},
        "expand": {"x": one, "shape": shape},
        "fill": {"x": one.astype(np.float64), "shape": shape},
        "cache": {"x": x.reshape(2, -1, 4)[:, :1], "past_x": np.empty((2, 0, 4), np.float32)},
    }
    for name, case in cases.items():
        state = "auto" if "past_x" in case else None
        yield made(name, SMALL[name], case, compiler.Options(optimize=False, state=state))


def paths() -> Iterator[Model]:
    """Plans of `PATHS`, optimized."""
    given: dict[str, Any] = {"count": np.array(3), "on": np.array(True), "c": np.array(True)}
    for name, graph in PATHS.items():
        sizes = {"n": 37, "m": 45, "k": 61, "h": 3}
        model = onnx.parser.parse_model(HEAD + graph)
        case = {
            info.name: given[info.name] if is_told(info, given) else value(info, sizes) for info in model.graph.input
        }
        yield made(name, graph, case, compiler.Options())


def is_told(info: Any, given: Mapping[str, Any]) -> bool:
    """Whether an input is a scalar with a given value."""
    return info.name in given and not info.type.tensor_type.shape.dim


def value(info: Any, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """A random input, with these sizes for its symbols."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    shape = [dim.dim_value or sizes[dim.dim_param] for dim in info.type.tensor_type.shape.dim]
    generator = np.random.default_rng(len(info.name) + sum(shape))
    if kind.kind in "iu":
        return generator.integers(0, 50, shape).astype(kind)
    return generator.standard_normal(shape).astype(kind)


def made(name: str, graph: str, case: dict[str, Any], options: compiler.Options) -> Model:
    """A model with one case."""
    plan = compiler.compile(onnx.parser.parse_model(HEAD + graph), options)
    return {"name": name, "plan": plan.data, "cases": [case], "tolerance": None}
