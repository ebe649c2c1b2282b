"""Products that `precision="int8"` quantizes: their results, their price, and those that stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from compiler.rewrite.report import PassReport
from tests.passes.quantized import quantized_product, quantized_weights
from tests.passes.weighted import (
    PRODUCTS,
    assert_stay,
    assert_unknown_name_is_refused,
    half_product,
    inputs_of,
    model_of,
    normal,
    ops_of,
)


def compiled(model: onnx.ModelProto, **options: Any) -> tuple[compiler.Plan, PassReport]:
    """A plan, and the report of the pass that quantizes."""
    reports: dict[str, PassReport] = {}
    chosen = Options(precision="int8", on_pass=lambda each: reports.__setitem__(each.name, each), **options)
    return compiler.compile(model, chosen), reports["quantize_products"]


@pytest.mark.parametrize(("name", "optimize"), [*((name, True) for name in PRODUCTS), ("Gemm", False)])
def test_results_are_those_of_the_definition(name: str, optimize: bool) -> None:
    text, shape = PRODUCTS[name]
    weights = normal(*shape)
    plan, report = compiled(model_of(text, w=weights), optimize=optimize)
    assert [each.rule for each in report.fired] == ["QuantizeOperands"]
    assert ops_of(plan).count("QuantizedMatMul") == 1 and not {"MatMul", "Gemm"} & {*ops_of(plan)}
    given = inputs_of(plan)
    columns = weights if "transposed" in name or name == "Gemm" else weights.T
    wanted = quantized_product(given["x"], *quantized_weights(columns)) + given.get("c", np.float32(0))
    np.testing.assert_array_equal(compiler.load(plan).run(given)["y"], wanted)


def test_an_epilogue_finishes_a_product() -> None:
    text = "(float[n, 48] x, float[40] c) => (float[n, 40] y) { h = Gemm(x, w, c) y = Relu(h) }"
    plan, _ = compiled(model_of(text, w=normal(48, 40)))
    assert ops_of(plan) == ["QuantizedMatMul"]
    given = inputs_of(plan)
    wanted = quantized_product(given["x"], *quantized_weights(normal(48, 40).T)) + given["c"]
    np.testing.assert_array_equal(compiler.load(plan).run(given)["y"], np.maximum(wanted, 0))


@pytest.mark.parametrize("rows", [1, 3, 70])
def test_results_do_not_depend_on_threads_or_memory(rows: int) -> None:
    text = "(float[n, 1030] x) => (float[n, 900] y) { y = MatMul(x, w) }"
    weights, x = normal(1030, 900), normal(rows, 1030, seed=1)
    plan, _ = compiled(model_of(text, w=weights))
    wanted = quantized_product(x, *quantized_weights(weights.T))
    for options in ({"threads": 1}, {"threads": 3}, {"memory": "low"}):
        np.testing.assert_array_equal(compiler.load(plan, **options).run({"x": x})["y"], wanted)


def test_a_row_that_is_not_finite_gives_nan_and_leaves_others_alone() -> None:
    text, shape = PRODUCTS["MatMul"]
    weights = normal(*shape)
    x = normal(4, 48, seed=1)
    x[1, 5], x[2, 7], x[3] = np.nan, np.inf, 0
    found = compiler.load(compiled(model_of(text, w=weights))[0]).run({"x": x})["y"]
    np.testing.assert_array_equal(found[:1], quantized_product(x[:1], *quantized_weights(weights.T)))
    assert np.isnan(found[1:3]).all() and not found[3].any()


def test_tables_stay() -> None:
    table = normal(60, 24)
    plan, report = compiled(model_of("(int64[n] i) => (float[n, 24] y) { y = Gather(w, i) }", w=table))
    assert not report.fired and ops_of(plan) == ["Gather"]


def test_a_plan_has_a_quarter_of_the_bytes() -> None:
    model = model_of("(float[n, 512] x) => (float[n, 256] y) { y = MatMul(x, w) }", w=normal(512, 256))
    assert len(compiled(model)[0].data) / len(compiler.compile(model).data) < 0.27


def test_a_session_shows_the_instructions() -> None:
    text, shape = PRODUCTS["MatMul"]
    (step,) = compiler.load(compiled(model_of(text, w=normal(*shape)))[0]).prepared().steps
    assert step.kernel is not None and step.kernel.startswith("int8, ")
    assert step.kernel in {each.form for each in step.alternatives}


def test_the_report_has_the_price_and_the_reasons() -> None:
    text = "(float[n, 48] x) => (float[n, 20] y) { h = MatMul(x, w) i = MatMul(h, v) y = MatMul(i, u) }"
    model = model_of(text, w=normal(48, 48), v=normal(48, 48, seed=1), u=normal(48, 20))
    _, report = compiled(model, keep=["v"])
    assert [each.note for each in report.fired] == ["int8, 2304 weights, relative error 0.57%"]
    assert {each.reason for each in report.near_misses} == {
        "the option `keep` names them",
        "the weights have fewer than 1024 elements",
    }


def test_too_deep_products_and_float16_stay() -> None:
    deep = model_of("(float[n, 65537] x) => (float[n, 2] y) { y = MatMul(x, w) }", w=normal(65537, 2))
    assert_stay(compiled, (half_product(), "the weights are FLOAT16"), (deep, "more than 65536 products"))


LOW_BIT = (
    "(float[n, 64] x) => (float[n, 64] y) { y = com.microsoft.MatMulNBits<K = 64, N = 64, block_size = 32>(x, w, s) }"
)


def low_bit_model() -> onnx.ModelProto:
    codes = np.random.default_rng(0).integers(0, 256, (64, 2, 16), np.uint8)
    model = model_of(LOW_BIT, w=codes, s=np.abs(normal(64, 2)))
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


def test_products_with_codes_may_round_their_left_operand() -> None:
    plan, report = compiled(low_bit_model())
    assert [each.note for each in report.fired] == ["int4, the codes stay, and rows may be rounded to 8 bits"]
    assert not report.near_misses
    (step,) = plan.document["main"]["steps"]
    assert step["op"]["MatMulNBits"]["rounds_a"]
    given = inputs_of(plan)
    exact = compiler.load(compiler.compile(low_bit_model())).run(given)["y"]
    found = compiler.load(plan).run(given)["y"]
    assert np.linalg.norm(found - exact) < 0.02 * np.linalg.norm(exact)


def test_products_with_codes_that_keep_names_stay() -> None:
    plan, report = compiled(low_bit_model(), keep=["MatMulNBits*"])
    assert not report.fired and [each.reason for each in report.near_misses] == ["the option `keep` names them"]
    assert not plan.document["main"]["steps"][0]["op"]["MatMulNBits"]["rounds_a"]


def test_an_unknown_name_is_refused() -> None:
    assert_unknown_name_is_refused(compiled)
