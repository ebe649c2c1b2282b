"""Rounding errors that onnxruntime has for inputs which differ by one rounding, as the noise of outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

from compiler.accuracy.verify import Given, Judge
from compiler.accuracy.yardstick import errors_are_alike, moved

Array = np.ndarray[Any, Any]


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_moved_inputs_are_neighbors() -> None:
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    given = {"x": x, "ids": np.arange(3), "limits": f32(-np.inf, np.nan, 0)}
    found = moved(given, 1)
    up, down = np.nextafter(x, f32(np.inf)), np.nextafter(x, f32(-np.inf))
    assert found["x"].dtype == x.dtype
    assert ((found["x"] == up) | (found["x"] == down)).all()
    assert 20 < (found["x"] == up).sum() < 80
    assert found["ids"] is given["ids"]
    assert found["limits"][0] == -np.inf and np.isnan(found["limits"][1]) and found["limits"][2] == 0
    assert (moved(given, 1)["x"] == found["x"]).all() and (moved(given, 2)["x"] != found["x"]).any()


@pytest.mark.parametrize(
    ("found", "other", "is_alike"),
    [
        ([1, 1, 0, 0], [0, 0, 0, 0], False),
        ([1, 1, 0, 0], [0, 0.3, 0, 0], False),
        ([1, 1, 0, 0], [0, 0.4, 0.4, 0], True),
        ([1, 1, 1, 0], [0, 0.4, 0.4, 0], False),
        ([3.1, 0, 0, 0], [9, 9, 9, 9], False),
        ([3, 3, 0, 0], [0, 9, 9, 0], True),
    ],
)
def test_they_excuse_as_many_errors_but_no_larger_ones(found: list[float], other: list[float], is_alike: bool) -> None:
    exact, expected = np.zeros(4), f32(1, 0, 0, 0)
    assert errors_are_alike(exact, f32(*found), expected, 0.1, lambda: [f32(*other)]) is is_alike


# Boxes of `[x, y, width, height, score]`. The sum rounds the coordinates to multiples of 1/16.
COARSE = """
<ir_version: 8, opset_import: ["" : 13]>
detector (float[1, 40, 5] x) => (float[1, 40, 5] y)
<int64[2] parts = {4, 1}, float large = {1000000}, float factor = {SCALE}> {
    boxes, logits = Split <axis = 2> (x, parts)
    moved = Add (boxes, large)
    rounded = Sub (moved, large)
    shifted = Mul (logits, factor)
    wave = Sin (shifted)
    scores = Sigmoid (wave)
    y = Concat <axis = 2> (rounded, scores)
}
"""
X, SCORE = 0, 4


def judged(scale: str, column: int, size: float) -> tuple[str, bool]:
    """The verdict on an error in one number of box 7, and whether moved inputs were run."""
    judge = Judge(onnx.parser.parse_model(COARSE.replace("SCALE", scale)))
    x = np.random.default_rng(0).uniform(0, 1, (1, 40, 5)) * [500, 500, 500, 500, 0.5]
    given: Given = judge.given({"x": x.astype(np.float32)})
    found = given.expected["y"].copy()
    found[0, 7, column] -= size
    (output,) = given.compare({"y": found}).outputs
    return output.verdict, "moved" in vars(given)


def test_a_wrong_score_beside_large_values_is_found() -> None:
    assert judged("1", SCORE, 1e-3) == ("different", True)
    assert judged("1", X, 0.05) == ("equal", False)
    assert judged("1", X, 1.0) == ("different", False)


def test_a_score_that_the_rounding_of_inputs_changes_is_rounding() -> None:
    """Each rounding of its logit changes the sine by a percent, and onnxruntime's own error is small by chance."""
    assert judged("1e5", SCORE, 1e-3) == ("equal", True)
    assert judged("1e5", SCORE, 0.5) == ("different", False)
