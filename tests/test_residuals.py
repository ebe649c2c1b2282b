"""Residual additions after convolutions on blocks of channels: in the last step of a tile, and in place if possible."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnxruntime
import pytest

import compiler

SIZE = 24


def model(body: str, outputs: str = "y", size: int = SIZE, **weights: tuple[int, ...]) -> onnx.ModelProto:
    """A graph of an image `x` `[1, 32, size, size]`, with weights of noise."""
    results = ", ".join(f"float[1, c_{name}, h_{name}, w_{name}] {name}" for name in outputs.split())
    header = '<ir_version: 9, opset_import: ["" : 20]>\n'
    made = onnx.parser.parse_model(f"{header} g (float[1, 32, {size}, {size}] x) => ({results}) {{ {body} }}")
    rng = np.random.default_rng(0)
    for name, shape in weights.items():
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made


POINT, THREE, DEPTHWISE = (32, 32, 1, 1), (32, 32, 3, 3), (32, 1, 3, 3)
CASES = {
    "winograd": ("a = Conv<pads=[1,1,1,1]>(x, v) b = Conv<pads=[1,1,1,1]>(a, w) y = Add(a, b)", THREE),
    "the sum first": ("a = Conv<pads=[1,1,1,1]>(x, v) b = Conv(a, w) y = Add(b, a)", POINT),
    "relu": ("a = Conv<pads=[1,1,1,1]>(x, v) b = Conv(a, w) c = Add(a, b) y = Relu(c)", POINT),
    "swish": (
        "a = Conv<pads=[1,1,1,1]>(x, v) b = Conv(a, w) c = Add(a, b) d = Sigmoid(c) y = Mul(c, d)",
        POINT,
    ),
    "of an older value": (
        "a = Conv<pads=[1,1,1,1]>(x, v) e = Relu(a) b = Conv<pads=[1,1,1,1]>(e, w) y = Add(a, b)",
        THREE,
    ),
}


def in_place(plan: compiler.Plan) -> list[list[int]]:
    """The inputs that the convolutions of a plan may overwrite."""
    return [step.in_place for step in compiler.load(plan).prepared().steps if step.op == "Conv"]


def check(made: onnx.ModelProto, plan: compiler.Plan, size: int = SIZE) -> None:
    """Compare the outputs with onnxruntime's."""
    x = np.random.default_rng(1).normal(0, 1, (1, 32, size, size)).astype(np.float32)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in made.graph.output]
    expected = dict(zip(names, session.run(names, {"x": x}), strict=True))
    for threads in (1, 2):
        found = compiler.load(plan, threads=threads).run({"x": x})
        for name in names:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_a_residual_is_added_in_place(case: str) -> None:
    body, last = CASES[case]
    made = model(body, v=THREE, w=last)
    plan = compiler.compile(made)
    assert [inputs for inputs in in_place(plan) if inputs], "no convolution adds a residual in place"
    check(made, plan)


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("a = Conv<pads=[1,1,1,1]>(x, v) b = Conv(a, w) y = Add(a, b)", "a y"),
        ("a = Conv<pads=[1,1,1,1]>(x, v) b = Conv(a, w) c = Add(a, b) y = Mul(c, a)", "y"),
        ("b = Conv(x, w) y = Add(x, b)", "y"),
        ("p = GlobalAveragePool(x) b = Conv(x, w) y = Add(p, b)", "y"),
    ],
    ids=["an output", "read twice", "the input", "broadcast"],
)
def test_a_residual_that_is_still_needed_is_kept(body: str, outputs: str) -> None:
    made = model(body, outputs, v=THREE, w=POINT)
    check(made, compiler.compile(made))


def test_a_depthwise_pair_adds_a_residual() -> None:
    body = "a = Conv<pads=[1,1,1,1]>(x, v) d = Conv<pads=[1,1,1,1], group=32>(a, k) b = Conv(d, w) y = Add(a, b)"
    made = model(body, size=64, v=THREE, k=DEPTHWISE, w=POINT)
    plan = compiler.compile(made)
    kernels = [step.kernel or "" for step in compiler.load(plan).prepared().steps if step.in_place]
    assert any("while it is in the cache" in kernel for kernel in kernels)
    check(made, plan, size=64)
