"""`compiler.choose_precision`: the products that it changes, their losses, and wrong use."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from tests.passes.weighted import model_of, normal, ops_of

Arrays = dict[str, np.ndarray]
TEXT = """(float[n, 48] x) => (float[n, 40] y, float[n, 40] z) {
    y = MatMul(x, first)
    h = Mul(x, large)
    z = MatMul(h, second)
}"""
"""Two products. The left operand of the second one has an outlier, so that 8 bits for a row are too few."""


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    large = np.ones(48, np.float32)
    large[0] = 1000
    second = normal(48, 40, seed=1)
    second[0] /= 1000
    return model_of(TEXT, first=normal(48, 40), second=second, large=large)


@pytest.fixture(scope="module")
def inputs() -> Arrays:
    return {"x": normal(30, 48, seed=3)}


def loss_of(plan: compiler.Plan, model: onnx.ModelProto, inputs: Arrays) -> float:
    exact, found = (compiler.load(each).run(inputs) for each in (compiler.compile(model), plan))
    return max(float(np.linalg.norm(found[name] - exact[name]) / np.linalg.norm(exact[name])) for name in exact)


def test_products_change_while_the_outputs_allow_it(model: onnx.ModelProto, inputs: Arrays) -> None:
    choice = compiler.choose_precision(model, 0.03, inputs)
    assert [(each.weights, each.changes) for each in choice.products] == [("first", True), ("second", False)]
    assert choice.products[0].loss == choice.loss < 0.03 < choice.products[1].loss
    plan = compiler.compile(model, choice.options)
    assert sorted(op for op in ops_of(plan) if "MatMul" in op) == ["MatMul", "QuantizedMatMul"]
    assert loss_of(plan, model, inputs) == pytest.approx(choice.loss, rel=1e-3)


@pytest.mark.parametrize(("max_loss", "changed"), [(1.0, 2), (1e-6, 0)])
def test_all_or_none_change(max_loss: float, changed: int, model: onnx.ModelProto, inputs: Arrays) -> None:
    choice = compiler.choose_precision(model, max_loss, inputs)
    assert ops_of(compiler.compile(model, choice.options)).count("QuantizedMatMul") == changed
    assert choice.loss <= max_loss and len(choice.products) == 2 - changed


def test_other_precisions_and_kept_weights(model: onnx.ModelProto, inputs: Arrays) -> None:
    choice = compiler.choose_precision(model, 0.01, inputs, Options(precision="bf16", keep=["first"]))
    assert choice.options.precision == "bf16" and choice.options.keep == ("first",) and not choice.products
    assert ops_of(compiler.compile(model, choice.options)).count("RoundedMatMul") == 1


def test_random_inputs(model: onnx.ModelProto) -> None:
    assert compiler.choose_precision(model, 1.0).loss > 0


def test_names_may_have_wildcards() -> None:
    text = "(float[n, 48] x) => (float[n, 40] y, float[n, 40] z) { y = MatMul(x, first) z = MatMul(x, second) }"
    made = model_of(text, first=normal(48, 40), second=normal(48, 40, seed=1))
    for at, name in enumerate(("w[0]*", "w[1]?")):
        made.graph.initializer[at].name = made.graph.node[at].input[1] = name
    choice = compiler.choose_precision(made, 1e-6)
    assert {each.weights for each in choice.products} == {"w[0]*", "w[1]?"}
    assert ops_of(compiler.compile(made, choice.options)) == ["MatMul", "MatMul"]


def test_wrong_use(model: onnx.ModelProto) -> None:
    for wrong in (0, -1.0, float("nan"), float("inf"), "1%", None):
        with pytest.raises(ValueError, match="max_loss: expected a positive number, found"):
            compiler.choose_precision(model, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r'options\.precision: expected "int8", "bf16" or "f16", found "f32"'):
        compiler.choose_precision(model, 0.01, options=Options())
