"""Products that the option `precision` rounds: their results, their price, and those that stay as they are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from compiler.rewrite.report import PassReport
from tests.passes.weighted import (
    PRODUCTS,
    Array,
    assert_stay,
    assert_unknown_name_is_refused,
    half_product,
    inputs_of,
    model_of,
    normal,
    ops_of,
)

EPSILON = 2.0**-23
"""The largest relative error of an addition in float32, by any instruction."""


def rounded(array: Array) -> Array:
    return array.astype(ml_dtypes.bfloat16).astype(np.float64)


def compiled(model: onnx.ModelProto, **options: Any) -> tuple[compiler.Plan, PassReport]:
    """A plan, and the report of the pass that rounds."""
    reports: dict[str, PassReport] = {}
    chosen = Options(precision="bf16", on_pass=lambda each: reports.__setitem__(each.name, each), **options)
    return compiler.compile(model, chosen), reports["round_products"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_results_are_those_of_rounded_operands(name: str) -> None:
    text, shape = PRODUCTS[name]
    weights = normal(*shape)
    plan, report = compiled(model_of(text, w=weights))
    assert [each.rule for each in report.fired] == ["RoundProduct"]
    assert ops_of(plan).count("RoundedMatMul") == 1 and not {"MatMul", "Gemm"} & {*ops_of(plan)}
    given = inputs_of(plan)
    turned = weights.T if "transposed" in name or name == "Gemm" else weights
    wanted = rounded(given["x"]) @ rounded(turned) + given.get("c", 0.0)
    terms = np.abs(rounded(given["x"])) @ np.abs(rounded(turned)) + np.abs(given.get("c", 0.0))
    found = compiler.load(plan).run(given)["y"]
    assert found.shape == wanted.shape
    assert (np.abs(found - wanted) <= EPSILON * (len(turned) + 2) * terms).all()


def test_products_are_rounded_without_optimization() -> None:
    text, shape = PRODUCTS["Gemm"]
    plan, report = compiled(model_of(text, w=normal(*shape)), optimize=False)
    assert [each.rule for each in report.fired] == ["RoundProduct"]
    optimized, _ = compiled(model_of(text, w=normal(*shape)))
    given = inputs_of(plan)
    np.testing.assert_array_equal(compiler.load(plan).run(given)["y"], compiler.load(optimized).run(given)["y"])


def test_an_epilogue_finishes_a_product() -> None:
    text = "(float[n, 48] x, float[40] c) => (float[n, 40] y) { h = Gemm(x, w, c) y = Relu(h) }"
    plan, _ = compiled(model_of(text, w=normal(48, 40)))
    assert ops_of(plan) == ["RoundedMatMul"]
    given = inputs_of(plan)
    wanted = np.maximum(rounded(given["x"]) @ rounded(normal(48, 40)) + given["c"], 0)
    np.testing.assert_allclose(compiler.load(plan).run(given)["y"], wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3, 70])
def test_results_do_not_depend_on_threads(rows: int) -> None:
    text = "(float[n, 1030] x) => (float[n, 900] y) { y = MatMul(x, w) }"
    plan, _ = compiled(model_of(text, w=normal(1030, 900)))
    given = {"x": normal(rows, 1030, seed=1)}
    one, three = (compiler.load(plan, threads=threads).run(given)["y"] for threads in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_results_do_not_depend_on_memory() -> None:
    text, shape = PRODUCTS["MatMul"]
    plan, _ = compiled(model_of(text, w=normal(*shape)))
    given = inputs_of(plan)
    full, low = compiler.load(plan).run(given)["y"], compiler.load(plan, memory="low").run(given)["y"]
    np.testing.assert_array_equal(full, low)


def test_rows_of_a_table_are_rounded() -> None:
    table = normal(60, 24)
    plan, report = compiled(model_of("(int64[n] i) => (float[n, 24] y) { y = Gather(w, i) }", w=table))
    assert [each.rule for each in report.fired] == ["RoundTable"]
    given = inputs_of(plan)
    np.testing.assert_array_equal(compiler.load(plan).run(given)["y"], rounded(table)[given["i"]])


def test_a_plan_has_half_the_bytes() -> None:
    model = model_of("(float[n, 512] x) => (float[n, 256] y) { y = MatMul(x, w) }", w=normal(512, 256))
    assert len(compiled(model)[0].data) / len(compiler.compile(model).data) < 0.52


def test_a_session_shows_the_instructions() -> None:
    text, shape = PRODUCTS["MatMul"]
    (step,) = compiler.load(compiled(model_of(text, w=normal(*shape)))[0]).prepared().steps
    assert step.kernel is not None
    instructions = {"bfloat16, AMX", "bfloat16, AVX512_BF16"}
    assert step.kernel in instructions or step.kernel.startswith("bfloat16 as float32, B prepacked")
    assert "bfloat16 as float32" in {each.form for each in step.alternatives}


def test_the_report_has_the_price_and_the_reasons() -> None:
    text = """(float[n, 48] x) => (float[n, 48] y) { h = MatMul(x, w) i = MatMul(h, v) y = MatMul(i, u) }"""
    large = normal(48, 48, seed=2)
    large[0, 0] = np.finfo(np.float32).max
    _, report = compiled(model_of(text, w=normal(48, 48), v=normal(48, 48, seed=1), u=large), keep=["v"])
    assert [each.note for each in report.fired] == ["bfloat16, 2304 weights, relative error 0.16%"]
    reasons = {"the option `keep` names them", "bfloat16 cannot represent a weight"}
    assert {each.reason for each in report.near_misses} == reasons


def test_float16_and_small_weights_stay() -> None:
    small = model_of("(float[n, 20] x) => (float[n, 20] y) { y = MatMul(x, w) }", w=normal(20, 20))
    assert_stay(compiled, (half_product(), "the weights are FLOAT16"), (small, "fewer than 1024 elements"))


def test_an_unknown_name_is_refused() -> None:
    assert_unknown_name_is_refused(compiled)


def test_other_precisions_are_refused() -> None:
    for precision in ("fp16", "float32", None, ["bf16"]):
        with pytest.raises(ValueError, match=r"Options\.precision: expected 'f32' or 'f16' or 'bf16' or 'int8', found"):
            Options(precision=precision)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [{"weights": "int8"}, {"keep_weights": True}])
def test_options_that_do_not_go_together(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"Options\.precision changes weights: leave it out, or {next(iter(other))}"):
        Options(precision="bf16", **other)
