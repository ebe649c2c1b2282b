"""The scale of each element of an output, and faults in small numbers beside large ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

from compiler.accuracy.compare import TOLERANCES, compare, tolerances
from compiler.accuracy.noise import with_noise
from compiler.accuracy.slices import Slices
from compiler.accuracy.verify import Judge
from compiler.accuracy.yardstick import ROUNDING, Squares, errors_are_alike, squares_of

Array = np.ndarray[Any, Any]

X, SCORE = 0, 4


def detections() -> Array:
    """Boxes of `[x, y, width, height, score]`, with coordinates up to 500 and scores up to 0.5."""
    made = np.random.default_rng(0).uniform(0, 1, (1, 40, 5)) * [500, 500, 500, 500, 0.5]
    made[0, 7] = 500, 500, 500, 500, 0.5
    rounded: Array = made.astype(np.float32)
    return rounded


def with_fault(array: Array, column: int, size: float) -> Array:
    """The array with an error in one number of box 7."""
    changed = array.copy()
    changed[0, 7, column] -= size
    return changed


@pytest.mark.parametrize(
    ("shape", "scales"),
    [
        ((8,), 100),
        ((2, 4), [[100], [8]]),
        ((4, 2), [[7, 100]]),
        ((1, 2, 4), [[[100], [8]]]),
        ((2, 1, 4), [[[100]], [[8]]]),
        ((2, 2, 2), [[[7, 100], [7, 100]], [[7, 8], [7, 8]]]),
        ((1, 1, 8), 100),
        ((1, 1, 2, 4), 100),
    ],
)
def test_an_element_has_the_scale_of_its_smallest_slice(shape: tuple[int, ...], scales: Any) -> None:
    values = np.array([1, 100, 3, 4, 5, 6, 7, 8], np.float64).reshape(shape)
    found = np.broadcast_to(Slices(values).scale, shape)
    np.testing.assert_array_equal(found, np.broadcast_to(scales, shape))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1, 3549, 85), 2),
        ((1, 84, 8400), 1),
        ((84, 8400), 0),
        ((20, 6), 1),
        ((1, 1, 20, 7), 3),
        ((1, 257, 257, 21), 3),
        ((1, 21, 65, 65), 1),
        ((2, 1000), 0),
        ((8, 1000), 0),
        ((1, 1000), None),
        ((1, 1, 480, 640), None),
        ((1, 172, 88), None),
        ((3, 6), 0),
        ((3, 3), None),
    ],
)
def test_the_axis_that_separates_kinds(shape: tuple[int, ...], axis: int | None) -> None:
    scale = Slices(np.random.default_rng(0).uniform(0, 1, shape)).scale
    assert scale.shape == tuple(size if index == axis else 1 for index, size in enumerate(shape))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (6, 7), (2, 5, 3), (1, 4, 5, 6)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_no_tolerance_is_larger_than_that_of_the_whole_output(shape: tuple[int, ...], dtype: str) -> None:
    drawn = np.random.default_rng(0)
    values = drawn.standard_normal(shape) * 10 ** drawn.uniform(-4, 4, shape[-1:])
    expected = np.asarray(values).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    whole = TOLERANCES[dtype] * np.abs(expected.astype(np.float64)).max(initial=0)
    for tolerance, most in [(None, whole), (0.0, 0.0), (1e-6, whole / TOLERANCES[dtype] * 1e-6)]:
        found = np.broadcast_to(tolerances(expected, tolerance), shape)
        assert (found <= most).all()
        assert (np.broadcast_to(tolerances(expected, tolerance, sliced=False), shape) == most).all()


def test_a_score_beside_coordinates_is_compared_on_its_own_scale() -> None:
    expected = detections()
    for column, size, is_equal in [(SCORE, 1e-3, False), (SCORE, 1e-5, True), (X, 1e-3, True), (X, 1e-2, False)]:
        found = {"y": with_fault(expected, column, size)}
        assert compare({"y": expected}, found).equal is (column == SCORE or is_equal)
        (output,) = compare({"y": expected}, found, sliced=True).outputs
        assert output.verdict == ("equal" if is_equal else "different"), (column, size)
        assert output.max_abs == pytest.approx(size, rel=2e-2)
        assert output.allowed == pytest.approx((0.5e-5 if column == SCORE else 500e-5) + 500 * ROUNDING, rel=2e-2)


DETECTOR = """
<ir_version: 8, opset_import: ["" : 13]>
detector (float[1, 40, 5] x) => (float[1, 40, 5] y) <int64[2] parts = {4, 1}> {
    boxes, logits = Split <axis = 2> (x, parts)
    scores = Sigmoid (logits)
    y = Concat <axis = 2> (boxes, scores)
}
"""


def test_the_judge_finds_a_wrong_score_beside_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """With double precision, and with onnxruntime's two results as the yardstick."""
    judge, inputs = Judge(onnx.parser.parse_model(DETECTOR)), {"x": detections()}
    right = judge.reference.run(inputs)["y"]
    for _ in range(2):
        assert judge.compare(inputs, {"y": right}).equal
        report = judge.compare(inputs, {"y": with_fault(right, SCORE, 1e-3)})
        (output,) = report.outputs
        assert output.verdict == "different" and output.max_abs == pytest.approx(1e-3, rel=1e-2)
        monkeypatch.setattr("compiler.accuracy.verify.run_exactly", lambda *_: None)
    assert output.reference_noise <= output.allowed and output.error is None


def test_an_error_of_a_coordinate_excuses_none_of_a_score() -> None:
    exact = detections().astype(np.float64)
    expected = with_fault(detections(), X, 0.1)
    assert errors_are_alike(exact, with_fault(detections(), X, 0.2), expected)
    assert not errors_are_alike(exact, with_fault(detections(), SCORE, 0.2), expected)


def test_noise_of_coordinates_makes_no_score_uncertain() -> None:
    expected, plain = detections(), with_fault(detections(), X, 0.1)
    for column, verdict in [(X, "uncertain"), (SCORE, "different")]:
        found = {"y": with_fault(expected, column, 0.05)}
        report = compare({"y": expected}, found, sliced=True)
        pair = {"y": expected}, {"y": plain}
        (output,) = with_noise(report, found, pair, pair).outputs
        assert output.verdict == verdict
        assert output.reference_noise == pytest.approx(0.1, rel=1e-2)


def test_the_ratio_is_of_errors_on_the_scale_of_each_element() -> None:
    exact = detections().astype(np.float64)
    ours, theirs = (np.float32(exact * (1 + size)) for size in (4e-4, 1e-4))
    for columns in (slice(None), slice(SCORE, None), slice(SCORE)):
        found = squares_of(exact[..., columns], ours[..., columns], theirs[..., columns])
        assert found is not None and found.ratio == pytest.approx(4, rel=1e-2)
        assert (found + found).ratio == pytest.approx(found.ratio)
    assert squares_of(exact, exact.astype(int), exact.astype(int)) is None
    assert squares_of(exact, np.full_like(exact, np.nan), exact) is None


def test_an_error_below_one_rounding_counts_as_one() -> None:
    assert Squares(0.0, 0.0, 4).ratio == 1
    assert Squares(4 * (2 * ROUNDING) ** 2, 0.0, 4).ratio == 2
