"""Products whose weights `precision="f16"` rounds: their results, their price, and those that stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from compiler.rewrite.report import PassReport
from tests.passes.weighted import PRODUCTS, inputs_of, model_of, normal, ops_of


def compiled(model: onnx.ModelProto, **options: Any) -> tuple[compiler.Plan, PassReport]:
    """A plan, and the report of the pass that rounds."""
    reports: dict[str, PassReport] = {}
    chosen = Options(precision="f16", on_pass=lambda each: reports.__setitem__(each.name, each), **options)
    return compiler.compile(model, chosen), reports["halve_products"]


@pytest.mark.parametrize(("name", "optimize"), [*((name, True) for name in PRODUCTS), ("Gemm", False)])
def test_results_are_those_of_rounded_weights(name: str, optimize: bool) -> None:
    text, shape = PRODUCTS[name]
    weights = normal(*shape)
    plan, report = compiled(model_of(text, w=weights), optimize=optimize)
    assert [each.rule for each in report.fired] == ["HalveProduct"]
    given = inputs_of(plan)
    rounded = compiler.compile(model_of(text, w=weights.astype(np.float16).astype(np.float32)))
    np.testing.assert_array_equal(compiler.load(plan).run(given)["y"], compiler.load(rounded).run(given)["y"])


@pytest.mark.parametrize(("rows", "kernel"), [(1, "B prepacked as float16"), (100, "B prepacked")])
def test_few_rows_read_weights_of_16_bits(rows: int, kernel: str) -> None:
    text = f"(float[{rows}, 48] x) => (float[{rows}, 40] y) {{ y = MatMul(x, w) }}"
    steps = compiler.load(compiled(model_of(text, w=normal(48, 40)))[0]).prepared().steps
    assert [each.kernel for each in steps if each.kernel] == [kernel]


def test_rows_of_a_table_are_rounded() -> None:
    table = normal(60, 24)
    plan, report = compiled(model_of("(int64[n] i) => (float[n, 24] y) { y = Gather(w, i) }", w=table))
    assert [each.rule for each in report.fired] == ["RoundTable"]
    given = inputs_of(plan)
    found = compiler.load(plan).run(given)["y"]
    np.testing.assert_array_equal(found, table.astype(np.float16).astype(np.float32)[given["i"]])


def test_a_plan_has_half_the_bytes() -> None:
    model = model_of("(float[n, 512] x) => (float[n, 256] y) { y = MatMul(x, w) }", w=normal(512, 256))
    assert len(compiled(model)[0].data) / len(compiler.compile(model).data) < 0.52


def test_the_report_has_the_price_and_the_reasons() -> None:
    text = "(float[n, 48] x) => (float[n, 48] y) { h = MatMul(x, w) i = MatMul(h, v) y = MatMul(i, u) }"
    large = normal(48, 48, seed=2)
    large[0, 0] = 65520
    model = model_of(text, w=normal(48, 48), v=normal(48, 48, seed=1), u=large)
    plan, report = compiled(model, keep=["v"])
    assert [each.note for each in report.fired] == ["float16, 2304 weights, relative error 0.02%"]
    reasons = {"the option `keep` names them", "float16 cannot represent a weight"}
    assert {each.reason for each in report.near_misses} == reasons
    assert ops_of(plan).count("MatMul") == 3
