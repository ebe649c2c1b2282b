"""Resizes, grid samplings and Col2Im of three spatial dimensions, lowered: tables of attributes, and random ones."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from tests.volumes.comparison import check, image, model_of, refusal_of

X = image(2, 4, 3, 4, 5)
SCALES = np.array([1, 1, 2, 2.5, 1.5], np.float32)
SIZES = np.array([2, 4, 5, 3, 8])
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_coordinates(mode, coordinates):
    given = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check("Resize", [X, None, SCALES], **given)
    check("Resize", [X, None, None, SIZES], **given)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_roundings(rounding):
    check("Resize", [X, None, None, SIZES], mode="nearest", nearest_mode=rounding)


@pytest.mark.parametrize("excludes", [0, 1])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
def test_cubic_against_the_reference(coordinates, excludes):
    given = {"mode": "cubic", "coordinate_transformation_mode": coordinates, "exclude_outside": excludes}
    model = model_of("Resize", [X, None, None, SIZES], "constants", 20, 1, given)
    check("Resize", [X, None, None, SIZES], expected=ReferenceEvaluator(model).run(None, {"x0": X}), **given)


def test_axes_and_filters():
    check("Resize", [X, None, SCALES[[3, 2, 4]]], mode="nearest", axes=[3, -3, 4])
    check("Resize", [X, None, None, SIZES[2:]], mode="linear", axes=[2, 3, 4], antialias=1)
    check("Resize", [X[0, 0], None, SCALES[2:]], forms=["constants", "symbols"], mode="linear")
    check("Resize", [X[0], None, SCALES[1:]], forms=["constants", "symbols"], mode="nearest")


def test_crops():
    region = np.array([0, 0, 0.1, 0.2, 0.3, 1, 1, 0.9, 0.8, 1.2], np.float32)
    given = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
    check("Resize", [X, region, SCALES], mode="linear", **given)
    check("Resize", [X, region, None, SIZES], mode="nearest", **given)


@pytest.mark.parametrize("scales", [(1, 1, 1, 2, 2), (1, 1, 1, 1, 1)])
def test_crops_of_axes_with_scale_one(scales):
    """onnxruntime does not crop these axes, unlike the standard."""
    region = np.array([0, 0, 0.1, 0.2, 0.3, 1, 1, 0.9, 0.8, 1.1], np.float32)
    given = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
    inputs = [X, region, np.array(scales, np.float32)]
    model = model_of("Resize", inputs, "inputs", 20, 1, given)
    expected = ReferenceEvaluator(model).run(None, {f"x{place}": array for place, array in enumerate(inputs)})
    check("Resize", inputs, expected=expected, **given)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_early_versions(mode):
    empty = np.zeros(0, np.float32)
    shrinking = SCALES * np.array([1, 1, 0.3, 0.4, 1], np.float32)
    for scales in (SCALES, shrinking):
        check("Resize", [X, scales], opset=10, forms=["constants"], mode=mode)
    check("Upsample", [X, SCALES], opset=9, forms=["constants"], mode=mode)
    check("Upsample", [X], opset=7, forms=["constants"], mode=mode, scales=SCALES.tolist())
    check("Resize", [X, empty, SCALES], opset=11, mode=mode)
    check("Resize", [X, None, None, SIZES], opset=13, mode=mode)
    check("Resize", [X, empty, empty, SIZES], opset=11, mode=mode)


def test_integers():
    codes = np.arange(60, dtype=np.uint8).reshape(1, 1, 3, 4, 5)
    check("Resize", [codes, None, SCALES], mode="nearest", tolerance=0)
    assert "round the interpolated integers twice" in refusal_of("Resize", [codes, None, SCALES], mode="linear")


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["nearest", "linear"]),
    st.sampled_from(COORDINATES),
    st.tuples(*[st.integers(1, 6)] * 3),
    st.tuples(*[st.integers(1, 9)] * 3),
    st.sampled_from(["constants", "inputs", "symbols"]),
    st.booleans(),
)
def test_random_sizes(mode, coordinates, old, new, form, optimize):
    sizes = np.array([1, 2, *new])
    given = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check("Resize", [image(1, 2, *old), None, None, sizes], forms=[form], optimized=[optimize], **given)


GRID = 0.9 * image(2, 3, 2, 4, 3, seed=1)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_grids(mode, padding, corners):
    check("GridSample", [X, GRID], mode=mode, padding_mode=padding, align_corners=corners)
    check("GridSample", [X, 5 * GRID], forms=["inputs"], mode=mode, padding_mode=padding, align_corners=corners)


def test_grids_of_other_types():
    check("GridSample", [X.astype(np.float64), GRID.astype(np.float64)], mode="linear")
    codes = np.arange(60, dtype=np.int32).reshape(1, 1, 3, 4, 5)
    whole = model_of("GridSample", [codes.astype(np.float32), GRID[:1]], "inputs", 20, 1, {"mode": "nearest"})
    expected = ReferenceEvaluator(whole).run(None, {"x0": codes.astype(np.float32), "x1": GRID[:1]})
    check("GridSample", [codes, GRID[:1]], expected=[expected[0].astype(np.int32)], tolerance=0, mode="nearest")


@settings(max_examples=20, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["nearest", "linear"]),
            "padding_mode": st.sampled_from(["zeros", "border", "reflection"]),
            "align_corners": st.integers(0, 1),
        }
    ),
    st.tuples(*[st.integers(2, 5)] * 3),
    st.integers(0, 1000),
    st.sampled_from(["constants", "symbols"]),
)
def test_random_grids(attributes, sizes, seed, form):
    grid = 1.2 * image(2, 2, 3, 2, 3, seed=seed)
    check("GridSample", [image(2, 3, *sizes, seed=seed), grid], forms=[form], tolerance=1e-4, **attributes)


BLOCKS = [
    ([3, 4, 5], [2, 2, 2], {}),
    ([4, 4, 5], [3, 2, 2], {"pads": [1, 0, 1, 0, 1, 0], "strides": [2, 2, 3], "dilations": [1, 1, 2]}),
]


@pytest.mark.parametrize(("size", "block", "attributes"), BLOCKS)
def test_blocks(size, block, attributes):
    """The expected result is a loop: onnxruntime 1.32 gives another one for strides and dilations of volumes."""
    strides, dilations, pads = (
        attributes.get(name, [n] * 6) for name, n in (("strides", 1), ("dilations", 1), ("pads", 0))
    )
    counts = [(size[k] + pads[k] + pads[k + 3] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1 for k in range(3)]
    x = image(2, 3 * math.prod(block), math.prod(counts))
    both, expected, apart = (slice(None),) * 2, np.zeros((2, 3, *size), np.float32), x.reshape(2, 3, *block, *counts)
    for tap in itertools.product(*map(range, block)):
        for at in itertools.product(*map(range, counts)):
            place = tuple(at[k] * strides[k] + tap[k] * dilations[k] - pads[k] for k in range(3))
            if all(0 <= place[k] < size[k] for k in range(3)):
                expected[both + place] += apart[both + tap + at]
    inputs = [x, np.array(size), np.array(block)]
    check("Col2Im", inputs, forms=["constants"], expected=[expected], **attributes)
    assert "its sizes are not known" in refusal_of("Col2Im", inputs, "inputs", **attributes)


@pytest.mark.parametrize(
    ("block", "count", "attributes", "reason"),
    [
        ([4, 2, 2], 24, {}, "its window is larger than the image"),
        ([2, 2, 2], 24, {"dilations": [3, 1, 1]}, "its window is larger than the image"),
        ([2, 2, 2], 24, {"dilations": [1, 1]}, "it needs 3 positive strides and dilations"),
        ([2, 2, 2], 24, {"dilations": [0, 1, 1]}, "it needs 3 positive strides and dilations"),
        ([2, 2, 2], 24, {"strides": [1, -1, 1]}, "it needs 3 positive strides and dilations"),
        ([2, 2, 2], 24, {"pads": [1, 1, 1]}, "it needs 6 pads, none of them negative"),
        ([2, 2, 2], 24, {"pads": [0, 0, 0, 0, 0, -1]}, "it needs 6 pads, none of them negative"),
        ([2, 2, 2], 23, {}, "its input has 23 blocks, and its window 24 places"),
    ],
)
def test_wrong_blocks(block, count, attributes, reason):
    inputs = [image(2, math.prod(block), count), np.array([3, 4, 5]), np.array(block)]
    assert refusal_of("Col2Im", inputs, **attributes).endswith(f"it is not lowered, because {reason}")


def test_what_is_not_lowered():
    ratio = {"mode": "nearest", "keep_aspect_ratio_policy": "not_larger"}
    reasons = [
        refusal_of("Resize", [X, None, None, SIZES], **ratio),
        refusal_of("GridSample", [X, GRID], mode="cubic"),
        refusal_of("GridSample", [X, GRID[:1]], "inputs"),
        refusal_of("Upsample", [X, SCALES], "inputs", opset=9),
    ]
    assert [reason.partition("it is not lowered, because ")[2] for reason in reasons] == [
        "it keeps the aspect ratio",
        "it has mode 'cubic' with padding 'zeros'",
        "it has 2 images and 1 grids",
        "its scales are not constant",
    ]
