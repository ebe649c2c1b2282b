"""Operators with an epilogue: they are one step, and give the result of separate steps."""

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler.pipeline import passes
from compiler.plan.show import show

CONV = "c = Conv<pads = [1, 1, 1, 1]>(x, w, b)"
ROOTS = {
    "Conv": ("float[N, 4, H, W] x", "float[4, 4, 3, 3] w, float[4] b", CONV, (4, 1, 1)),
    "Conv without bias": ("float[N, 4, H, W] x", "float[4, 4, 1, 1] w", "c = Conv(x, w)", (4, 1, 1)),
    "Conv of groups": (
        "float[N, 4, H, W] x",
        "float[4, 1, 3, 3] w",
        "c = Conv<group = 4, pads = [1, 1, 1, 1]>(x, w)",
        (4, 1, 1),
    ),
    "Conv over one axis": (
        "float[N, 4, L] x",
        "float[4, 4, 3] w",
        "c = Conv<dilations = [2], pads = [2, 2]>(x, w)",
        (4, 1),
    ),
    "ConvTranspose": (
        "float[N, 4, H, W] x",
        "float[4, 4, 3, 3] w",
        "c = ConvTranspose<pads = [1, 1, 1, 1]>(x, w)",
        (4, 1, 1),
    ),
    "Gemm": ("float[N, 4] x", "float[4, 4] w, float[4] b", "c = Gemm<transB = 1, alpha = 0.5>(x, w, b)", (4,)),
    "MatMul": ("float[N, M, 4] x", "float[4, 4] w", "c = MatMul(x, w)", (4,)),
}
"""The input, the constants, the operator, and the shape of an operand of one number a channel."""

EPILOGUES = {
    "Relu": "y = Relu(c)",
    "ReLU6": "y = Clip(c, zero, six)",
    "clipped above": "y = Clip(c, , six)",
    "LeakyRelu": "y = LeakyRelu<alpha = 0.1>(c)",
    "PRelu": "y = PRelu(c, p)",
    "HardSwish": "y = HardSwish(c)",
    "HardSwish in parts": "t = HardSigmoid<alpha = 0.1666666716337204>(c)  y = Mul(c, t)",
    "Sigmoid": "y = Sigmoid(c)",
    "SiLU": "t = Sigmoid(c)  y = Mul(c, t)",
    "Mish": "t = Softplus(c)  u = Tanh(t)  y = Mul(c, u)",
    "GELU": "t = Div(c, two)  u = Erf(t)  v = Add(u, one)  s = Mul(c, v)  y = Mul(s, half)",
    "Gelu": 'y = Gelu<approximate = "tanh">(c)',
    "Tanh": "y = Tanh(c)",
    "Elu": "y = Elu<alpha = 0.7>(c)",
    "Snake": "t = Mul(p, c)  u = Sin(t)  s = Pow(u, two)  v = Mul(q, s)  y = Add(c, v)",
    "scale and shift of channels": "t = Mul(c, p)  y = Add(q, t)",
    "residual": "t = Add(c, r)  y = Relu(t)",
    "activated residual": "t = Sigmoid(c)  s = Mul(t, c)  y = Add(r, s)",
    "transformed operand": "t = Exp(r)  s = Sub(t, c)  y = Max(s, p)",
}


WITHOUT_FUSION = [step.name for step in passes(compiler.Options()) if not step.name.startswith("fuse_")]


def steps_of(plan):
    """The lines of the plan's text that are steps."""
    return [line for line in show(plan).splitlines() if line.startswith("%")]


def model_of(root, epilogue):
    """The model of the operator and the following nodes, with seeded random constants."""
    x, given, node, channel = ROOTS[root]
    kind = x.rsplit(" ", 1)[0]
    text = f"""
        <ir_version: 10, opset_import: ["" : 20]>
        fused ({x}, {kind} r, {given}, float{list(channel)} p, float{list(channel)} q) => (float y)
        <float zero = {{0}}, float six = {{6}}, float two = {{2}}, float one = {{1}}, float half = {{0.5}}>
        {{ {node}  {EPILOGUES[epilogue]} }}
    """
    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(0)
    constants = [value for value in model.graph.input if value.name not in ("x", "r")]
    for value in constants:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = random.standard_normal(shape).astype("f4")
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        model.graph.input.remove(value)
    shape = {"N": 2, "H": 7, "W": 5, "L": 9, "M": 3}
    dims = [shape.get(dim.dim_param, dim.dim_value) for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return model, {name: (random.standard_normal(dims) * 2).astype("f4") for name in ("x", "r")}


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("root", ROOTS)
def test_one_step_gives_what_several_give(root, epilogue):
    model, feeds = model_of(root, epilogue)
    fused = compiler.compile(model)
    apart = compiler.compile(model, compiler.Options(passes=WITHOUT_FUSION))
    assert len(steps_of(fused)) == (2 if epilogue == "transformed operand" else 1) <= len(steps_of(apart))
    found, expected = (compiler.load(plan, threads=1).run(feeds)["y"] for plan in (fused, apart))
    np.testing.assert_array_equal(found, expected)
