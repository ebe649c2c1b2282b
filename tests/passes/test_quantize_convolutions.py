"""Convolutions that a calibration set quantizes: their steps, their results, their error, and those that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import compiler
import compiler.calibration
from compiler import Options
from compiler.accuracy.reference import Reference
from compiler.rewrite.quantized.ranges import Observed
from compiler.rewrite.report import PassReport
from tests.passes.weighted import Array, model_of, normal, ops_of

Q, C, DQ = "QuantizeLinear", "QLinearConv", "DequantizeLinear"
SAME = "<pads = [1, 1, 1, 1]>"
PLAIN = f"(float[n, 8, 9, 9] x) => (float[n, 6, 9, 9] y) {{ h = Conv{SAME}(x, a) r = Relu(h) y = Conv{SAME}(r, b) }}"

GRAPHS: dict[str, tuple[str, dict[str, list[int]], list[str]]] = {
    "two convolutions": (PLAIN, {"a": [12, 8, 3, 3], "b": [6, 12, 3, 3]}, [Q, C, C]),
    "biases and Relu6": (
        """(float[n, 3, 12, 12] x) => (float[n, 5, 4, 4] y) <float low = {0.0}, float high = {6.0}> {
            h = Conv<strides = [2, 2]>(x, a, p) r = Clip(h, low, high) y = Conv<strides = [1, 1]>(r, b, q)
        }""",
        {"a": [8, 3, 3, 3], "p": [8], "b": [5, 8, 2, 2], "q": [5]},
        [Q, C, C],
    ),
    "uneven pads": (
        "(float[n, 4, 9, 7] x) => (float[n, 6, h, w] y) { h = Conv<pads = [0, 1, 2, 0]>(x, a) y = Conv(h, b) }",
        {"a": [6, 4, 3, 3], "b": [6, 6, 1, 1]},
        [Q, C, C],
    ),
    "residual": (
        f"""(float[n, 8, 9, 9] x) => (float[n, 8, 9, 9] y) {{
            h = Conv{SAME}(x, a) r = Relu(h) s = Conv{SAME}(r, b) t = Add(s, r) u = Relu(t) y = Conv{SAME}(u, c)
        }}""",
        {"a": [8, 8, 3, 3], "b": [8, 8, 3, 3], "c": [8, 8, 3, 3]},
        [Q, C, C, "QLinearBinary", C],
    ),
    "depthwise": (
        """(float[n, 8, 9, 9] x) => (float[n, 8, 9, 9] y) {
            h = Conv(x, a) r = Relu(h) d = Conv<group = 16, pads = [1, 1, 1, 1]>(r, b, p) e = Relu(d) y = Conv(e, c)
        }""",
        {"a": [16, 8, 1, 1], "b": [16, 1, 3, 3], "p": [16], "c": [8, 16, 1, 1]},
        [Q, C, C, C],
    ),
    "groups": (
        "(float[n, 8, 9, 9] x) => (float[n, 12, h, w] y) { i = Conv<group = 2>(x, a) y = Conv(i, b) }",
        {"a": [12, 4, 3, 3], "b": [12, 12, 1, 1]},
        [Q, C, C],
    ),
    "one dimension": (
        "(float[n, 6, 30] x) => (float[n, 5, m] y) { h = Conv<dilations = [2], pads = [2, 2]>(x, a) y = Conv(h, b) }",
        {"a": [7, 6, 3], "b": [5, 7, 1]},
        [Q, C, C],
    ),
    "pools and parts": (
        f"""(float[n, 8, 8, 8] x) => (float[n, 5, 1, 1] y) {{
            h = Conv{SAME}(x, a) p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(h) q = Conv{SAME}(p, b)
            c = Concat<axis = 1>(p, q) s = Sigmoid(c) g = GlobalAveragePool(s) y = Conv(g, e)
        }}""",
        {"a": [8, 8, 3, 3], "b": [8, 8, 3, 3], "e": [5, 16, 1, 1]},
        [Q, C, "MaxPool", C, "LookUp", "LookUp", "Concat", "LookUp", "QLinearGlobalAveragePool", C],
    ),
    "a float operator between": (
        f"(float[n, 8, 9, 9] x) => (float[n, 6, h, w] y) {{ i = Conv{SAME}(x, a) r = Softmax(i) y = Conv(r, b) }}",
        {"a": [8, 8, 3, 3], "b": [6, 8, 3, 3]},
        [Q, C, "Softmax", Q, C],
    ),
    "also read by another operator": (
        f"""(float[n, 8, 9, 9] x) => (float[n, 6, h, w] y, float[n, 8, 9, 9] z) {{
            h = Conv{SAME}(x, a) r = Relu(h) y = Conv(r, b) z = Softmax(r)
        }}""",
        {"a": [8, 8, 3, 3], "b": [6, 8, 3, 3]},
        [Q, C, DQ, C, "Softmax"],
    ),
    "an input that another operator reads": (
        f"""(float[n, 8, 9, 9] x) => (float[n, 8, 9, 9] y, float[n, 8, 9, 9] z) {{
            y = Conv{SAME}(x, a) z = Softmax(x)
        }}""",
        {"a": [8, 8, 3, 3]},
        [Q, C, "Softmax"],
    ),
    "also an output": (
        f"(float[n, 8, 9, 9] x) => (float[n, 8, 9, 9] r, float[n, 6, h, w] y) {{ r = Conv{SAME}(x, a) y = Conv(r, b)}}",
        {"a": [8, 8, 3, 3], "b": [6, 8, 3, 3]},
        [Q, C, DQ, C],
    ),
}
"""Graphs: the text, the shapes of the weights, and the steps of the plan except those that move elements."""


def made(name: str) -> tuple[onnx.ModelProto, list[dict[str, Array]]]:
    """A graph with weights, and inputs to calibrate it."""
    text, shapes, _ = GRAPHS[name]
    scaled = {
        key: normal(*shape, seed=at) / np.sqrt(np.prod(shape[1:])) for at, (key, shape) in enumerate(shapes.items())
    }
    model = model_of(text, **{key: array.astype(np.float32) for key, array in scaled.items()})
    sizes = [size.dim_value or 2 for size in model.graph.input[0].type.tensor_type.shape.dim]
    return model, [{"x": normal(*sizes, seed=seed)} for seed in (7, 8, 9)]


def compiled(model: onnx.ModelProto, cases: Any, **options: Any) -> tuple[compiler.Plan, PassReport, onnx.ModelProto]:
    """A plan, the report of the pass that quantizes convolutions, and the graph after it."""
    kept: dict[str, Any] = {}

    def keep(report: PassReport, graph: ir.Model) -> None:
        if report.name == "quantize_convolutions":
            kept.update(report=report, graph=ir.to_proto(graph))

    plan = compiler.compile(model, Options(precision="int8", calibration=cases, on_model=keep, **options))
    return plan, kept["report"], kept["graph"]


def error_of(found: Array, exact: Array) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("name", GRAPHS)
def test_steps_compute_on_codes(name: str) -> None:
    model, cases = made(name)
    plan, report, _ = compiled(model, cases, verify_passes=True)
    assert [op for op in ops_of(plan) if op not in ("Transpose", "Reshape")] == GRAPHS[name][2]
    assert [each.rule for each in report.fired] == ["QuantizeConvolution"] * GRAPHS[name][2].count(C)


@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_those_of_onnxruntime_for_the_written_graph(name: str) -> None:
    """The numbers before a rounding to codes differ by rounding errors, so that a few codes may differ by one."""
    model, cases = made(name)
    plan, _, graph = compiled(model, cases)
    session, reference = compiler.load(plan), Reference(graph, optimize=False)
    for case in cases:
        found, wanted = session.run(case), reference.run(case)
        for key, expected in wanted.items():
            near = np.abs(found[key] - expected) <= 1e-5 * np.abs(expected).max()
            assert near.mean() > 0.97 and error_of(found[key], expected) < 2e-3


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_error_is_small(name: str, optimize: bool) -> None:
    model, cases = made(name)
    exact, plan = compiler.compile(model), compiled(model, cases, optimize=optimize)[0]
    for case in cases:
        wanted = compiler.load(exact).run(case)
        for key, found in compiler.load(plan).run(case).items():
            assert error_of(found, wanted[key]) < 0.025


def test_pads_are_zeros_although_the_zero_point_is_not() -> None:
    model, _ = made("two convolutions")
    case = {"x": normal(1, 8, 9, 9) + 3}
    plan, _, _ = compiled(model, [case])
    found, wanted = (compiler.load(each).run(case)["y"] for each in (plan, compiler.compile(model)))
    assert error_of(found[..., [0, -1]], wanted[..., [0, -1]]) < 0.02


def test_batch_norms_are_folded_first() -> None:
    text = """(float[n, 8, 9, 9] x) => (float[n, 6, 9, 9] y) {
        h = Conv(x, a) m = BatchNormalization(h, s, s, t, s) r = Relu(m) y = Conv(r, b)
    }"""
    weights = {"a": normal(8, 8, 1, 1), "b": normal(6, 8, 1, 1), "s": np.abs(normal(8)) + 1, "t": normal(8)}
    case = {"x": normal(1, 8, 9, 9, seed=4)}
    plan, report, _ = compiled(model_of(text, **weights), [case])
    assert ops_of(plan).count(C) == 2 and "Elementwise" not in ops_of(plan) and len(report.fired) == 2


def test_named_convolutions_stay() -> None:
    model, cases = made("residual")
    plan, report, _ = compiled(model, cases, keep=["b"])
    assert ops_of(plan).count(C) == 2 and ops_of(plan).count("Conv") == 1
    assert [each.reason for each in report.near_misses] == ["the option `keep` names them"]
    with pytest.raises(compiler.CompileError, match=r"CC0407.*no weight has the name 'd'"):
        compiled(model, cases, keep=["b", "d"])


def test_products_are_quantized_row_by_row_as_without_calibration() -> None:
    text = "(float[n, 8, 6, 6] x) => (float[n, 40] y) { h = Conv(x, a) f = Flatten(h) y = MatMul(f, w) }"
    model = model_of(text, a=normal(8, 8, 1, 1), w=normal(288, 40))
    plan, _, _ = compiled(model, [{"x": normal(2, 8, 6, 6)}])
    assert {C, "QuantizedMatMul"} <= {*ops_of(plan)}
    assert plan.document["metadata"]["candle.price"].startswith("int8, 1 convolution and 1 matrix, largest")


def test_without_calibration_convolutions_stay() -> None:
    model, cases = made("residual")
    plan = compiler.compile(model, Options(precision="int8"))
    assert ops_of(plan).count("Conv") == 3 and "candle.price" not in plan.document["metadata"]
    found, wanted = (compiler.load(each).run(cases[0])["y"] for each in (plan, compiler.compile(model)))
    np.testing.assert_array_equal(found, wanted)


def test_the_plan_states_the_price() -> None:
    model, cases = made("residual")
    plan, report, _ = compiled(model, cases)
    assert [each.note for each in report.fired] == [
        f"int8, 576 weights, relative error {each.error:.2%}" for each in report.fired
    ]
    assert all(0.004 < each.error < 0.008 for each in report.fired)
    stated = plan.document["metadata"]["candle.price"]
    assert stated.startswith("int8, 3 convolutions, largest relative error 0.")
    assert stated.endswith("%, ranges of activations from 3 inputs")


STAY = [
    ("(float16[n, 8, 9, 9] x) => (float16[n, 6, 9, 9] y) { y = Conv(x, a) }", np.float16, "the weights are FLOAT16"),
    (
        "(float[n, 8, 9, 9] x, float[6] b) => (float[n, 6, 9, 9] y) { y = Conv(x, a, b) }",
        np.float32,
        "the weights or the bias are not constant",
    ),
]


@pytest.mark.parametrize(("text", "dtype", "reason"), STAY)
def test_others_stay(text: str, dtype: type, reason: str) -> None:
    model = model_of(text, a=normal(6, 8, 1, 1).astype(dtype))
    case = {"x": normal(1, 8, 9, 9).astype(dtype), **({"b": normal(6)} if "] b)" in text else {})}
    plan, report, _ = compiled(model, [case])
    assert ops_of(plan) == ["Conv"] and [each.reason for each in report.near_misses] == [reason]


def test_channels_of_zeros_and_large_biases() -> None:
    """The bias of an output whose weights are all 0 or tiny sets the scale of these weights."""
    weights, bias = normal(6, 8, 1, 1), normal(6)
    weights[0], weights[1] = 0, weights[1] * 1e-12
    bias[:3] = 3, -2, 1e3
    text = "(float[n, 8, 9, 9] x) => (float[n, 6, 9, 9] y) { y = Conv(x, a, b) }"
    model, case = model_of(text, a=weights, b=bias), {"x": normal(1, 8, 9, 9)}
    plan, _, _ = compiled(model, [case])
    found, wanted = (compiler.load(each).run(case)["y"] for each in (plan, compiler.compile(model)))
    for channel in range(6):
        assert error_of(found[:, channel], wanted[:, channel]) < 0.02


def test_inputs_that_are_always_zero() -> None:
    model, _ = made("two convolutions")
    plan, _, _ = compiled(model, [{"x": np.zeros((1, 8, 9, 9), np.float32)}])
    assert not compiler.load(plan).run({"x": np.zeros((1, 8, 9, 9), np.float32)})["y"].any()


X = normal(1, 8, 9, 9)
WRONG = [
    ([{}], compiler.InputError, "calibration input 1 of 1: input 'x' is missing"),
    ([{"x": X}, {"x": X[:, :7]}], compiler.InputError, "calibration input 2 of 2: input 'x': expected"),
    ([{"x": X}, {"x": X * np.nan}], compiler.InputError, "calibration input 2 of 2: 'x' is infinite or NaN"),
    (
        [{"x": X / X * np.float32(3e38)}],
        compiler.InputError,
        "calibration input 1 of 1: '[hry]' is infinite or NaN.*`keep`",
    ),
    ([], ValueError, "Options.calibration: expected the inputs of at least one run, found none"),
    ({"x": X}, TypeError, "Options.calibration: expected dicts of arrays by name, found dict"),
    ([X], TypeError, r"Options.calibration\[0\]: expected a dict of arrays by name, found ndarray"),
]


@pytest.mark.parametrize(("cases", "kind", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_wrong_data(cases: Any, kind: type[Exception], message: str) -> None:
    model, _ = made("two convolutions")
    with pytest.raises(kind, match=message):
        compiler.compile(model, Options(precision="int8", calibration=cases))


def test_data_without_its_precision_is_refused() -> None:
    with pytest.raises(ValueError, match=r'Options\.calibration is for precision "int8"'):
        Options(calibration=[{"x": X}])


def test_data_may_be_an_iterator_and_the_range_leaves_out_an_outlier() -> None:
    """A single large number would make the steps of all others coarse."""
    model, _ = made("two convolutions")
    large = normal(1000, 8, 9, 9)
    large[0, 0, 0, 0] = 60
    _, _, graph = compiled(model, iter([{"x": large}, {"x": X}]))
    (scale,) = (onnx.numpy_helper.to_array(each) for each in graph.graph.initializer if each.name == "x.scale")
    assert scale < 0.6 * (60 - large.min()) / 255


@pytest.mark.parametrize("numbers", [[1e-43, -1e-43], [3e38, -3e38], [0.0, 1e-39]])
def test_ranges_of_extreme_numbers(numbers: list[float]) -> None:
    array, found = np.array(numbers, np.float32), Observed()
    found.widen(array)
    found.count(array)
    codes = found.codes()
    stored = np.rint(array / codes.scale.astype(np.float64)) + codes.zero
    back = (stored.clip(0, 255) - codes.zero) * codes.scale.astype(np.float64)
    assert np.abs(back - array).max() <= max(0.51 * float(codes.scale), 1e-38) or codes.scale == 1


def test_the_choice_by_loss_includes_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    model, cases = made("residual")
    observed, observe = [], compiler.calibration._observed  # type: ignore[attr-defined]
    monkeypatch.setattr(compiler.calibration, "_observed", lambda *given: observed.append(given[1]) or observe(*given))  # type: ignore[attr-defined, func-returns-value]
    options = Options(precision="int8", calibration=cases)
    all_of_them = compiler.choose_precision(model, 0.5, options=options)
    assert 0 < all_of_them.loss < 0.025 and not all_of_them.products
    some = compiler.choose_precision(model, all_of_them.loss * 0.9, options=options)
    assert {each.weights for each in some.products} == {"a", "b", "c"}
    assert 0 < sum(each.changes for each in some.products) < 3
    kept = compiler.compile(model, some.options)
    assert ops_of(kept).count("Conv") == sum(not each.changes for each in some.products)
    assert some.loss <= all_of_them.loss * 0.9
    assert len(observed) == 2 + 1, "one calibration for each choice, and one for the plan"
