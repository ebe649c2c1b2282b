"""The node QuantizedMatMul of `candle.plan` against its definition, bit by bit."""

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.passes.quantized import quantized_product
from tests.scratch.row import FLAT, TALL, rows

RANDOM = np.random.default_rng(3)


def model_of(shape, *, kind="float", weight="int8[7, 90]", scale="float[7]"):
    return onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "candle.plan" : 1]>
        agraph ({kind}{[*shape, 90]} x, {weight} w, {scale} s) => ({kind}{[*shape, 7]} y) {{
            y = candle.plan.QuantizedMatMul (x, w, s)
        }}
    """)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (130,)])
def test_products(shape, constant):
    x = RANDOM.standard_normal((*shape, 90)).astype(np.float32)
    w = RANDOM.integers(-128, 128, (7, 90)).astype(np.int8)
    s = RANDOM.uniform(0.001, 0.01, 7).astype(np.float32)
    model, feeds = model_of(shape), {"x": x, "w": w, "s": s}
    if constant:
        model.graph.initializer.extend(onnx.numpy_helper.from_array(feeds.pop(name), name) for name in ("w", "s"))
        del model.graph.input[1:]
    plan = compiler.compile(model)
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]] == ["QuantizedMatMul"]
    found = compiler.load(plan).run(feeds)["y"]
    np.testing.assert_array_equal(found, quantized_product(x, w, s))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "float16"}, "A is float16"),
        ({"weight": "uint8[7, 90]"}, "W is uint8"),
        ({"weight": "int8[90]"}, "W has shape .90.; it must be a matrix"),
        ({"weight": "int8[7, 91]"}, r"A has shape \[2, 90\]; its last size must be 91"),
        ({"scale": "float[1]"}, r"the scale has shape \[1\]; it must have 7 elements"),
    ],
)
def test_operands_that_do_not_fit_are_refused(given, reason):
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(model_of((2,), **given))


SCRATCH = [
    *(
        row
        for sizes in (TALL, FLAT)
        for constants in ("", "w a")
        for row in rows(
            "float",
            "T[n, k] x, int8[m, k] w, T[m] a",
            "y = candle.plan.QuantizedMatMul(x, w, a)",
            constants=constants,
            **sizes,
        )
    ),
]
