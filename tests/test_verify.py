"""The comparison with a reference: verdicts and messages."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler import TensorInfo
from compiler.accuracy.compare import Verdict, compare, counted
from compiler.accuracy.precision import exact_outputs
from compiler.accuracy.random_inputs import random_inputs
from compiler.accuracy.reference import Reference
from compiler.accuracy.to_float64 import to_float64
from compiler.accuracy.verify import Judge, random_outputs
from compiler.accuracy.yardstick import errors_are_alike
from compiler.frontend.load import load_model

NAN, INF = float("nan"), float("inf")


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


CASES = [
    # expected, found, tolerance, passes
    (f32(1, 2, 3), f32(1, 2, 3), None, True),
    (f32(1, 2, 100), f32(1, 2.0009, 100), None, True),
    (f32(1, 2, 100), f32(1, 2.0011, 100), None, False),
    (f32(1, 2, 100), f32(1, 2.0011, 100), 1e-4, True),
    (f32(0, 0), f32(0, 1e-9), None, False),
    (f32(0, 0), f32(-0.0, 0), None, True),
    (f32(1e-9, 5e-9), f32(0, 0), None, False),
    (f32(1e-9, 5e-9), f32(1e-9, 5.00004e-9), None, True),
    (f32(1e-9, 5e-9), f32(1e-9, 5.0001e-9), None, False),
    (f32(3e-45), f32(1.5e-45), None, True),
    (f32(NAN, INF, -INF), f32(NAN, INF, -INF), None, True),
    (f32(NAN, 1), f32(1, NAN), None, False),
    (f32(INF), f32(-INF), None, False),
    (f32(INF), f32(3e38), None, False),
    (f32(), f32(), None, True),
    (np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32), None, False),
    (f32(1), np.array([1.0]), None, False),
    (np.array(1.0), np.array(1.0 + 1e-8), None, False),
    (np.array([1, 2]), np.array([1, 2]), None, True),
    (np.array([1, 2]), np.array([1, 3]), 1.0, False),
    (np.array([2**60]), np.array([2**60 + 1]), None, False),
    (np.array([NAN, 1], ml_dtypes.float8_e5m2), np.array([NAN, 1], ml_dtypes.float8_e5m2), None, True),
    (np.array([NAN], ml_dtypes.float8_e5m2), np.array([1], ml_dtypes.float8_e5m2), None, False),
    (np.array([True]), np.array([False]), None, False),
    (np.array(["a"], object), np.array(["a"], object), None, True),
    (np.array(["a"], object), np.array(["b"], object), None, False),
    (np.array([1, 1.001], np.float16), np.array([1, 1.002], np.float16), None, True),
    (np.array([1], ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16), None, True),
    ([f32(1), f32(2)], [f32(1), f32(2)], None, True),
    ([f32(1), f32(2)], [f32(1)], None, False),
    ([f32(1), f32(2)], [f32(1), f32(3)], None, False),
    (None, None, None, True),
    (None, f32(1), None, False),
]


@pytest.mark.parametrize(("expected", "found", "tolerance", "passes"), CASES)
def test_compare(expected: Any, found: Any, tolerance: float | None, passes: bool) -> None:
    report = compare({"y": expected}, {"y": found}, tolerance)
    assert report.ok is report.equal is passes
    assert (report.worst <= 1) is passes


def test_a_missing_output_does_not_pass() -> None:
    assert not compare({"y": f32(1)}, {}).ok


def test_differences_are_measured() -> None:
    (output,) = compare({"y": f32(1, -2)}, {"y": np.nextafter(f32(1, -2), f32(9, 9), dtype=np.float32)}).outputs
    assert output.max_abs == pytest.approx(2**-23)
    assert output.max_rel == pytest.approx(2**-23)
    assert output.max_ulp == 1


def test_ulps_count_across_zero() -> None:
    tiny = np.finfo(np.float32).smallest_subnormal
    (output,) = compare({"y": f32(tiny)}, {"y": f32(-tiny)}).outputs
    assert output.max_ulp == 2


# The scale makes rounding errors of the convolution large; onnxruntime folds the one into the other.
CANCELING = """
<ir_version: 8, opset_import: ["" : 13]>
model (float[1, 1, 64] x) => (float[1, 1, 64] y)
<float[1, 1, 1] w = {1.1}, float[1] scale = {1000000}, float[1] shift = {0}, float[1] mean = {1.1}, float[1] var = {1}>
{
    c = Conv (x, w)
    y = BatchNormalization (c, scale, shift, mean, var)
}
"""
ALMOST_ONE = (1 + np.random.default_rng(0).standard_normal((1, 1, 64)) / 100_000).astype(np.float32)


def test_errors_as_large_as_onnxruntimes_are_rounding() -> None:
    model, inputs = onnx.parser.parse_model(CANCELING), {"x": ALMOST_ONE}
    judge, exact = Judge(model), exact_outputs(model, inputs)
    assert exact is not None
    error = np.abs(exact["y"] - judge.reference.run(inputs)["y"]).max()
    for times, is_equal in [(2.9, True), (3.1, False), (1 / 29, True), (1 / 31, False)]:
        found = exact["y"].copy()
        found.flat[0] += times * error
        report = judge.compare(inputs, {"y": found.astype(np.float32)})
        (output,) = report.outputs
        assert output.max_abs > output.allowed
        assert report.equal is output.rounds_alike is is_equal, times
    (stated,) = judge.compare(inputs, {"y": exact["y"].astype(np.float32)}, tolerance=1e-6).outputs
    assert stated.verdict == "different" and not stated.rounds_alike


@pytest.mark.parametrize(
    ("found", "is_alike"),
    [
        ([3, 0, 0, 0], True),
        ([0, 0, 0, 3], True),
        ([3.1, 0, 0, 0], False),
        ([1, 1, 0, 0], False),
        ([0.01, 0, 0, 0], False),
        ([1, 0.09, 0.09, 0.09], True),
        ([np.nan, 0, 0, 0], False),
    ],
)
def test_one_large_error_excuses_no_other(found: list[float], is_alike: bool) -> None:
    exact, expected = np.zeros(4), f32(1, 0, 0, 0)
    assert errors_are_alike(exact, np.array(found, np.float32), expected, 0.1) is is_alike
    assert not errors_are_alike(exact, np.array(found), expected[:3], 0.1)
    assert not errors_are_alike(exact, expected.astype(int), expected.astype(int), 0.1)


def test_a_difference_within_reference_noise_is_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.accuracy.verify.in_double_precision", lambda *_: None)
    judge, inputs = Judge(onnx.parser.parse_model(CANCELING)), {"x": ALMOST_ONE}
    reference = judge.reference
    plain, optimized = reference.plain.run(inputs)["y"], reference.run(inputs)["y"]
    noise = np.float32(np.abs(plain - optimized).max())
    for found, verdict in [
        (optimized, "equal"),
        (plain, "equal"),
        (plain + np.float32(0.9) * noise, "uncertain"),
        (plain + np.float32(1.2) * noise, "different"),
        (optimized - np.float32(1.2) * noise, "different"),
    ]:
        report = judge.compare(inputs, {"y": found})
        (output,) = report.outputs
        assert output.verdict == verdict
        assert report.equal is (verdict == "equal")
        assert report.ok is (verdict != "different")
        assert found is optimized or output.reference_noise == noise > output.allowed
    assert not judge.compare(inputs, {"y": plain}, tolerance=1e-5).ok


def test_the_words_for_uncertain_state_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.accuracy.verify.in_double_precision", lambda *_: None)
    judge, inputs = Judge(onnx.parser.parse_model(CANCELING)), {"x": ALMOST_ONE}
    plain, optimized = judge.reference.plain.run(inputs)["y"], judge.reference.run(inputs)["y"]
    noise = np.abs(plain - optimized).max()
    allowed = 1e-5 * np.abs(optimized).max()
    for share, verdict in [
        (0.5, "1 is uncertain: it differs by at most the reference noise plus the tolerance"),
        (1.5, "1 is not equal"),
    ]:
        report = judge.compare(inputs, {"y": (plain + (noise + share * allowed)).astype(np.float32)})
        (output,) = report.outputs
        assert (output.reference_noise, output.allowed) == pytest.approx((noise, allowed))
        assert output.nearest > output.reference_noise > output.allowed
        assert (output.nearest <= output.reference_noise + output.allowed) is (share < 1)
        assert report.summary == f"0 of 1 output equals onnxruntime's; {verdict}"


def test_a_difference_without_reference_noise_is_different() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> m (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    (output,) = Judge(model).compare({"x": f32(1, 2)}, {"y": f32(-1, -2.00003)}).outputs
    assert output.verdict == "different"
    assert output.reference_noise == 0
    with pytest.warns(DeprecationWarning, match=r"Comparison\.doubt is deprecated: use reference_noise"):
        assert output.doubt == 0


def test_a_large_difference_is_measured_in_double_precision_too() -> None:
    model = onnx.parser.parse_model(CANCELING)
    report = compiler.verify(model, compiler.compile(model, compiler.Options(optimize=False)), {"x": ALMOST_ONE})
    (output,) = report.outputs
    assert output.verdict == "equal" and output.max_abs > output.allowed
    c = ALMOST_ONE.astype(np.float64) * np.float32(1.1)
    exact = 1e6 * (c - np.float32(1.1)) / np.sqrt(1 + np.float64(np.float32(1e-5)))
    theirs = Reference(model).run({"x": ALMOST_ONE})["y"]
    assert output.reference_error == pytest.approx(np.abs(exact - theirs).max(), rel=1e-6)
    assert output.error is not None and 0 < output.error < 3 * output.reference_error


ENLARGED = """
<ir_version: 8, opset_import: ["" : 13]>
model (float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) <float[4] initial = {1, 1, 2, 2}> {
    enlarged = Resize <mode = "nearest"> (x, , initial)
    written = Constant <value = float[4] {1, 1, 1, 1}> ()
    same = Resize <mode = "linear"> (enlarged, , written)
    narrow = Cast <to = 1> (same)
    y = Neg (narrow)
}
"""


def test_a_model_in_double_precision_keeps_what_has_to_be_float32() -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 4))
    (y,) = compiler.load(compiler.compile(to_float64(onnx.parser.parse_model(ENLARGED)))).run({"x": x}).values()
    np.testing.assert_array_equal(y, -x.repeat(2, axis=2).repeat(2, axis=3))


CALLING = """
<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
model (float[2] x) => (float[2] y) {{ y = own.F {call} (x) }}
<domain: "own", opset_import: ["" : {opset}]>
F <{takes}> (x) => (y) {{ c = Constant <{constant}> ()  k = CastLike (c, x)  y = Mul (x, k) }}
"""


@pytest.mark.parametrize(
    ("takes", "constant", "call"),
    [
        ("a", "value_float: float = @a", "<a = 2.5>"),
        ("a: float = 2.5", "value_float: float = @a", ""),
        ("a", "value_floats: floats = @a", "<a = [2.5, 2.5]>"),
        ("a", "value: tensor = @a", "<a = float[2] {2.5, 2.5}>"),
        ("value_float", "value_float: float = @value_float", "<value_float = 2.5>"),
        ("a", "value_float = 2.5", "<a = 1.0>"),
    ],
)
def test_a_function_in_double_precision_takes_the_attributes_of_its_call(takes: str, constant: str, call: str) -> None:
    model = onnx.parser.parse_model(CALLING.format(takes=takes, constant=constant, call=call, opset=20))
    x = np.array([1, 1 + 2.0**-40])
    (y,) = compiler.load(compiler.compile(to_float64(model))).run({"x": x}).values()
    np.testing.assert_array_equal(y, 2.5 * x)


def test_a_function_that_takes_attributes_is_of_the_models_opset() -> None:
    text = CALLING.format(takes="a", constant="value_float: float = @a", call="<a = 2.5>", opset=19)
    with pytest.raises(compiler.CompileError, match="opset 19"):
        compiler.compile(to_float64(onnx.parser.parse_model(text)))


def test_a_summary_says_equal_of_nothing_else() -> None:
    verdicts: list[Verdict] = ["equal", "uncertain", "equal", "different", "uncertain", "random"]
    assert counted(verdicts, "output") == (
        "2 of 6 outputs equal onnxruntime's; "
        "1 is random, and only its dtype and shape were compared; "
        "2 are uncertain: they differ by at most the reference noise plus the tolerance; 1 is not equal"
    )
    assert counted(["equal"], "output") == "1 of 1 output equals onnxruntime's"


RANDOM = """
<ir_version: 9, opset_import: ["": 20]>
dice (float[4] x, bool b) => (float[4] noise, float[4] scaled, float[4] branch, float[4] same)
{
    noise = RandomNormalLike <seed = 1.0> (x)
    scaled = Mul (noise, x)
    branch = If (b) <
        then_branch = yes () => (float[4] t) { t = RandomUniformLike (x) },
        else_branch = no () => (float[4] e) { e = Neg (x) }
    >
    same = Neg (x)
}
"""


CASTING = """<ir_version: 9, opset_import: ["": 20]> m (bool c, float[2, 3] x) => (float[2, 3] y, float[2, 3] z)
<float[3, 3] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, float16[3] h = {1, 2, 3}, float[3] kept = {0.1, 0, 1}> {
    a = MatMul (x, w)
    y = Gemm (a, w, kept)
    z = If (c) <
        then_branch = t () => (float[2, 3] p) { i = Cast <to = 1> (h)  q = Mul (a, i)  p = MatMul (q, w) },
        else_branch = e () => (float[2, 3] r) { r = Neg (a) }
    >
}"""


def test_large_weights_are_cast_to_double_precision_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model(CASTING)
    inputs = {"c": np.array(True), "x": np.array([[0.3, 1.7, -2], [1e-3, 5, 0.1]], np.float32)}
    expected = exact_outputs(model, inputs)
    monkeypatch.setattr("compiler.accuracy.to_float64.LARGE_WEIGHT", 1)
    casts = [node for node in load_model(to_float64(model)).model.graph.all_nodes() if "_wide_" in (node.name or "")]
    assert len(casts) == 5
    found = exact_outputs(model, inputs)
    assert expected is not None and found is not None
    assert all(found[name].dtype == np.float64 for name in found)
    assert compare(expected, found, tolerance=0).equal


def test_a_large_model_is_loaded_for_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.pipeline.LARGE", 1)
    data = onnx.parser.parse_model(CASTING).SerializeToString()
    inputs = {"c": np.array(False), "x": np.ones((2, 3), np.float32)}
    assert compiler.verify(data, inputs=inputs).equal
    judge = Judge(data)
    assert judge.reference is not judge.reference and judge.double is not judge.double
    assert compare(judge.reference.run(inputs), judge.reference.plain.run(inputs), tolerance=1e-6).equal


@pytest.mark.parametrize("optimize", [True, False])
def test_random_numbers_are_compared_by_dtype_and_shape(optimize: bool) -> None:
    model = onnx.parser.parse_model(RANDOM)
    plan = compiler.compile(model, compiler.Options(optimize=optimize))
    assert random_outputs(plan) == {"noise", "scaled", "branch"}
    report = compiler.verify(model, plan, {"x": f32(1, 2, 3, 4), "b": np.array(True)})
    assert {each.name: each.verdict for each in report.outputs} == {
        "noise": "random", "scaled": "random", "branch": "random", "same": "equal"
    }  # fmt: skip
    assert report.ok and not report.equal
    (other,) = compare({"noise": f32(1, 2)}, {"noise": f32(1)}, random={"noise"}).outputs
    assert other.verdict == "different"


def test_a_reference_opens_its_plain_form_once() -> None:
    reference = Reference(onnx.parser.parse_model(CANCELING))
    assert reference.plain is reference.plain is reference.plain.plain


DECLARED = [
    TensorInfo("image", "float32", ("batch", 3, None)),
    TensorInfo("tokens", "int64", ("batch", "time")),
    TensorInfo("mask", "bool", ()),
    TensorInfo("half", "bfloat16", ("time",)),
    TensorInfo("word", "string", (2,)),
]


def test_random_inputs_fit_the_declaration() -> None:
    made = random_inputs(DECLARED, {"time": 5})
    assert {name: (array.dtype.name, array.shape) for name, array in made.items()} == {
        "image": ("float32", (1, 3, 16)),
        "tokens": ("int64", (1, 5)),
        "mask": ("bool", ()),
        "half": ("bfloat16", (5,)),
        "word": ("object", (2,)),
    }


def test_sizes_of_symbols_that_no_input_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no input has a dimension 'tyme': did you mean time"):
        random_inputs(DECLARED, {"tyme": 5})


def test_random_inputs_are_those_of_the_seed() -> None:
    one, two, other = (random_inputs(DECLARED, {}, seed)["image"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
