"""Plans without their weights: a session draws the weights again, and they are the same each time."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

import compiler

TOOLS = Path(__file__).parent.parent / "tools"
GRAPH = """<ir_version: 10, opset_import: ["": 20]> g (float[1, 64] x) => (float[1, 64] y) {
    p = MatMul (x, w) y = Add (p, b)
}"""


def test_weights_are_drawn() -> None:
    drawn = runpy.run_path(str(TOOLS / "gpu/drawn.py"))
    model = onnx.parser.parse_model(GRAPH)
    generator = np.random.default_rng(0)
    weights = 3 * generator.standard_normal((64, 64), np.float32)
    bias = generator.standard_normal(64, np.float32)
    model.graph.initializer.extend(
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b")]
    )
    plan = compiler.compile(model)
    blank = drawn["blanked"](plan.data)
    filled = drawn["filled"](blank)
    assert filled == drawn["filled"](blank) != plan.data
    assert len(filled) == len(plan.data)
    assert sum(map(len, blank["kept"])) == len(plan.data) - weights.nbytes
    # Small constants are unchanged, and the checksum includes the generated ones.
    x = np.zeros((1, 64), np.float32)
    np.testing.assert_array_equal(compiler.load(compiler.Plan(filled)).run({"x": x})["y"], bias[None])
    product = compiler.load(compiler.Plan(filled)).run({"x": x + 1})["y"] - bias
    assert 12 < product.std() < 48
    # The last bits of the weights move the result a little.
    nudged = compiler.load(compiler.Plan(drawn["nudged"](blank))).run({"x": x + 1})["y"] - bias
    assert 0 < np.abs(nudged - product).max() < 1e-5 * np.abs(product).max()
