"""The node RoundedMatMul of `candle.plan` against a product in double precision."""

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.scratch.row import FLAT, TALL, rows

RANDOM = np.random.default_rng(3)


def model_of(shape, trans_w, *, kind="float", weight="bfloat16[90, 7]"):
    return onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "candle.plan" : 1]>
        agraph ({kind}{[*shape, 90]} x, {weight} w) => ({kind}{[*shape, 7]} y) {{
            y = candle.plan.RoundedMatMul <trans_w = {int(trans_w)}> (x, w)
        }}
    """)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("trans_w", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_products(shape, trans_w, constant):
    x = RANDOM.standard_normal((*shape, 90)).astype(np.float32)
    w = RANDOM.standard_normal((90, 7)).astype(ml_dtypes.bfloat16)
    stored = np.ascontiguousarray(w.T) if trans_w else w
    model = model_of(shape, trans_w, weight="bfloat16[7, 90]" if trans_w else "bfloat16[90, 7]")
    feeds = {"x": x, "w": stored}
    if constant:
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop("w"), "w"))
        del model.graph.input[1:]
    plan = compiler.compile(model)
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]] == ["RoundedMatMul"]
    found = compiler.load(plan, threads=1).run(feeds)["y"]
    expected = x.astype(ml_dtypes.bfloat16).astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "float16"}, "A is float16"),
        ({"weight": "float[90, 7]"}, "W is float32"),
        ({"weight": "bfloat16[90]"}, "W has shape .90.; it must be a matrix"),
        ({"weight": "bfloat16[91, 7]"}, r"A has shape \[2, 90\]; its last size must be 91"),
    ],
)
def test_operands_that_do_not_fit_are_refused(given, reason):
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(model_of((2,), False, **given))


SCRATCH = [
    *(
        row
        for sizes in (TALL, FLAT)
        for constants in ("", "w")
        for row in rows(
            "float",
            "T[n, k] x, bfloat16[m, k] w",
            "y = candle.plan.RoundedMatMul<trans_w = 1>(x, w)",
            constants=constants,
            **sizes,
        )
    ),
]
