"""The comparison with a reference: what passes, what does not, and what is said of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

from compiler import TensorInfo
from compiler.check import compare, compare_with_reference
from compiler.reference import Reference
from compiler.samples import random_inputs

NAN, INF = float("nan"), float("inf")


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


CASES = [
    # expected, found, tolerance, passes
    (f32(1, 2, 3), f32(1, 2, 3), None, True),
    (f32(1, 2, 100), f32(1, 2.0009, 100), None, True),
    (f32(1, 2, 100), f32(1, 2.0011, 100), None, False),
    (f32(1, 2, 100), f32(1, 2.0011, 100), 1e-4, True),
    (f32(0, 0), f32(0, 9e-9), None, True),
    (f32(0, 0), f32(0, 2e-8), None, False),
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
    assert report.ok is passes
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
CANCELLING = """
<ir_version: 8, opset_import: ["" : 13]>
model (float[1, 1, 64] x) => (float[1, 1, 64] y)
<float[1, 1, 1] w = {1.1}, float[1] scale = {1000000}, float[1] shift = {0}, float[1] mean = {1.1}, float[1] var = {1}>
{
    c = Conv (x, w)
    y = BatchNormalization (c, scale, shift, mean, var)
}
"""


def test_what_onnxruntime_is_unsure_of_is_allowed_twice() -> None:
    model = onnx.parser.parse_model(CANCELLING)
    inputs = {"x": (1 + np.random.default_rng(0).standard_normal((1, 1, 64)) / 100_000).astype(np.float32)}
    reference = Reference(model)
    plain = reference.plain.run(inputs)
    (output,) = compare_with_reference(reference, inputs, plain).outputs
    assert output.ok and output.widened
    assert output.max_abs == output.doubt == output.allowed / 2 > 0
    assert not compare_with_reference(reference, inputs, {"y": plain["y"] + 3 * np.float32(output.doubt)}).ok
    assert not compare_with_reference(reference, inputs, plain, tolerance=1e-5).ok


def test_what_onnxruntime_is_sure_of_is_not() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> m (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    (output,) = compare_with_reference(Reference(model), {"x": f32(1, 2)}, {"y": f32(-1, -2.001)}).outputs
    assert not output.ok and not output.widened
    assert output.doubt == 0


def test_a_reference_opens_its_plain_form_once() -> None:
    reference = Reference(onnx.parser.parse_model(CANCELLING))
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
    with pytest.raises(ValueError, match=r"no input has a symbolic dimension 'tyme'; there are batch, time"):
        random_inputs(DECLARED, {"tyme": 5})


def test_random_inputs_are_those_of_the_seed() -> None:
    one, two, other = (random_inputs(DECLARED, {}, seed)["image"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
