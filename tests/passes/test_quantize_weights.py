"""Weights that the option `weights` quantizes: their codes, their price, and the weights that stay as they are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from compiler.rewrite.quantized_rows import QuantizedRows
from compiler.rewrite.report import PassReport
from compiler.rewrite.weight_format import WeightFormat
from tests.passes.weighted import inputs_of, model_of, normal

Array = np.ndarray[Any, Any]

FORMATS = ["int8", "int8:16", "int4", "int4:64"]
ERRORS = {8: 0.01, 4: 0.12}
"""The bits → the largest relative error of normally distributed weights."""
GRAPHS = {
    "MatMul": ("(float[n, 48] x) => (float[n, 40] y) { y = MatMul(x, w) }", [48, 40]),
    "MatMul of a batch": ("(float[n, 3, 48] x) => (float[n, 3, 40] y) { y = MatMul(x, w) }", [48, 40]),
    "transposed MatMul": ("(float[n, 48] x) => (float[n, 40] y) { t = Transpose(w) y = MatMul(x, t) }", [40, 48]),
    "partial block": ("(float[n, 50] x) => (float[n, 40] y) { y = MatMul(x, w) }", [50, 40]),
    "Gemm": ("(float[n, 48] x, float[40] c) => (float[n, 40] y) { y = Gemm<transB = 1>(x, w, c) }", [40, 48]),
    "Gemm without addend": ("(float[n, 48] x) => (float[n, 40] y) { y = Gemm(x, w) }", [48, 40]),
    "Conv": ("(float[n, 8, 9, 9] x) => (float[n, 32, 7, 7] y) { y = Conv(x, w) }", [32, 8, 3, 3]),
    "grouped Conv": ("(float[n, 16, 9] x) => (float[n, 64, 7] y) { y = Conv<group = 2>(x, w) }", [64, 8, 3]),
    "ConvTranspose": ("(float[n, 16, 9] x) => (float[n, 32, 11] y) { y = ConvTranspose(x, w) }", [16, 32, 3]),
    "Gather": ("(int64[n] i) => (float[n, 24] y) { y = Gather(w, i) }", [60, 24]),
    "Gather of a matrix of places": ("(int64[n, 2] i) => (float[n, 2, 24] y) { y = Gather(w, i) }", [60, 24]),
}


def compiled(model: onnx.ModelProto, weights: str | None = "int8", **options: Any) -> tuple[compiler.Plan, PassReport]:
    """A plan, and the report of the pass that quantizes."""
    reports: dict[str, PassReport] = {}
    plan = compiler.compile(
        model, Options(weights=weights, on_pass=lambda each: reports.__setitem__(each.name, each), **options)
    )
    return plan, reports.get("quantize_weights", PassReport(""))


def restored(weights: Array, format: WeightFormat, axis: int) -> Array:
    """The weights after quantization, whose rows lie along all axes but `axis`."""
    first = np.moveaxis(weights, axis, 0)
    found = QuantizedRows.of(first.reshape(len(first), -1), format)
    steps = found.codes.astype(np.float32) - np.float32(1 << (format.bits - 1))
    rows = (steps * found.scales[..., None]).reshape(len(first), -1)[:, : first[0].size]
    return np.ascontiguousarray(np.moveaxis(rows.reshape(first.shape), 0, axis))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_those_of_the_restored_weights(name: str, format: str) -> None:
    text, shape = GRAPHS[name]
    weights, is_product = normal(*shape), "MatMul" in name or "Gemm" in name or name == "partial block"
    used = WeightFormat.parse(format if is_product else "int8")
    is_turned = "transposed" in name or name in ("Gemm", "Conv", "grouped Conv") or "Gather" in name
    same = restored(weights, used, 0 if is_turned else 1)
    plan, report = compiled(model_of(text, w=weights), format)
    assert len(report.fired) == 1
    given = inputs_of(plan)
    wanted = compiler.load(compiler.compile(model_of(text, w=same))).run(given)["y"]
    np.testing.assert_allclose(compiler.load(plan).run(given)["y"], wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("format", ["int8", "int4"])
def test_a_plan_is_smaller(format: str) -> None:
    model = model_of("(float[n, 512] x) => (float[n, 256] y) { y = MatMul(x, w) }", w=normal(512, 256))
    share = len(compiled(model, format)[0].data) / len(compiler.compile(model).data)
    assert share < {"int8": 0.27, "int4": 0.18}[format]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_weights_become_constants_when_a_plan_is_loaded(kind: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    text = f"(float[t, 2, 40] x) => (float[t, 1, 2, 32] y) {{ y = {kind}<hidden_size = 32>(x, w, r) }}"
    weights = {"w": normal(1, gates * 32, 40), "r": normal(1, gates * 32, 32, seed=2)}
    plan, report = compiled(model_of(text, **weights))
    assert [each.rule for each in report.fired] == ["QuantizeStored", "QuantizeStored"]
    same = {name: restored(array, WeightFormat.parse("int8"), 1) for name, array in weights.items()}
    session, given = compiler.load(plan), inputs_of(plan)
    wanted = compiler.load(compiler.compile(model_of(text, **same))).run(given)["y"]
    np.testing.assert_array_equal(session.run(given)["y"], wanted)


def test_a_run_does_not_dequantize_constants() -> None:
    text, shape = GRAPHS["Conv"]
    plan, _ = compiled(model_of(text, w=normal(*shape)))
    assert "DequantizeLinear" in str(plan.document["main"]["steps"])
    profile = compiler.load(plan).profile(inputs_of(plan))
    assert [each.op for each in profile] == ["Conv"]


def test_little_memory_keeps_the_codes() -> None:
    """With little memory, each run dequantizes the weights; otherwise, no codes are left.

    Winograd's forms, which need memory, round otherwise.
    """
    text, shape = GRAPHS["Conv"]
    plan, _ = compiled(model_of(text, w=normal(*shape)))
    full, low = compiler.load(plan), compiler.load(plan, memory="low")
    given = inputs_of(plan)
    wanted = full.run(given)["y"]
    np.testing.assert_allclose(low.run(given)["y"], wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
    assert [each.op for each in low.profile(given)] == ["DequantizeLinear", "Conv"]
    count = int(np.prod(shape))
    assert low.prepared().constant_bytes == count + 4 * shape[0]
    assert full.prepared().constant_bytes == 0


@pytest.mark.parametrize("pattern", ["w", "first", "fir*", "block.first.weight"])
def test_named_weights_stay(pattern: str) -> None:
    text = """(float[n, 48] x) => (float[n, 48] y) {
        h = MatMul(x, w) y = MatMul(h, v)
    }"""
    model = model_of(text, w=normal(48, 48), v=normal(48, 48, seed=1))
    model.graph.node[0].name = "/block/first/MatMul"
    if "." in pattern:
        model.graph.node[0].input[1] = model.graph.initializer[0].name = pattern
    _, report = compiled(model, keep=[pattern])
    assert [(each.origin.nodes, "relative error" in each.note) for each in report.fired] == [(("MatMul(y)",), True)]
    assert [each.reason for each in report.near_misses] == ["the option `keep` names them"]


def test_an_unknown_name_is_refused() -> None:
    text, shape = GRAPHS["MatMul"]
    with pytest.raises(compiler.CompileError, match=r"CC0407.*no weight has the name 'lm_head'"):
        compiled(model_of(text, w=normal(*shape)), keep=["w", "lm_head"])


@pytest.mark.parametrize("reason", ["fewer than 1024", "not finite", "the weights are DOUBLE"])
def test_weights_that_do_not_fit_stay(reason: str) -> None:
    array = {
        "fewer than 1024": normal(20, 20),
        "not finite": np.where(np.arange(2304).reshape(48, 48) == 7, np.nan, normal(48, 48)).astype(np.float32),
        "the weights are DOUBLE": normal(48, 48).astype(np.float64),
    }[reason]
    kind = {"float32": "float", "float64": "double"}[array.dtype.name]
    rows, columns = array.shape
    _, report = compiled(model_of(f"({kind}[n, {rows}] x) => ({kind}[n, {columns}] y) {{ y = MatMul(x, w) }}", w=array))
    assert not report.fired
    assert [reason in each.reason for each in report.near_misses] == [True]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("format", FORMATS)
def test_codes_are_close_to_the_weights(format: str, dtype: Any) -> None:
    rows = normal(7, 100).astype(dtype)
    rows[3] = 0
    found = QuantizedRows.of(rows, WeightFormat.parse(format))
    back = restored(rows.astype(np.float32), WeightFormat.parse(format), 0)
    assert found.error < ERRORS[found.bits]
    assert not back[3].any()
    assert found.scales.dtype == dtype
    assert found.packed(100).codes.nbytes == found.codes.size * found.bits // 8


def test_the_largest_number_of_a_block_is_exact() -> None:
    rows = np.array([[-3.5, 1, 0.25, 2], [7, 1, -1, 2]], np.float32)
    for format in ("int4", "int8"):
        found = restored(rows, WeightFormat.parse(format), 0)
        np.testing.assert_allclose(np.abs(found).max(1), [3.5, 7], rtol=1e-6)


@pytest.mark.parametrize("text", ["int3", "int8:", "int8:0", "int4:24", "int4:-32", "float16", ""])
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Options\.weights: .*(is not a format of weights|is a multiple of 16)"):
        Options(weights=text)


def test_quantized_weights_without_optimization() -> None:
    text, shape = GRAPHS["MatMul"]
    plan, report = compiled(model_of(text, w=normal(*shape)), optimize=False)
    assert len(report.fired) == 1
    assert compiler.load(plan).run(inputs_of(plan))["y"].shape == (5, 40)
