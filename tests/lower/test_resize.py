import itertools

import numpy as np
import pytest

import compiler
from tests.scratch.row import IMAGE, IMAGES, integers, rows

COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SCALES = [(2.0, 2.0), (1.7, 0.6), (0.5, 3.0), (1.0, 2.5)]
NO_SCALES = np.array([], np.float32)


def image(*shape, dtype=np.float32):
    return (np.random.default_rng(0).normal(size=shape) * 20).astype(dtype)


def scaled(*scales):
    return np.array(scales, np.float32)


@pytest.mark.parametrize(("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS)))
def test_nearest(check_node, coordinates, rounding):
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    for scales in SCALES:
        inputs = [image(2, 3, 5, 10), None, scaled(1, 1, *scales)]
        check_node("Resize", inputs, opset=19, attributes=attributes, rtol=0, atol=0)
    for sizes in ((7, 9), (3, 20)):
        inputs = [image(2, 3, 5, 10), None, None, np.array([2, 3, *sizes])]
        check_node("Resize", inputs, opset=19, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("antialias", [0, 1])
def test_weighted(check_node, mode, coordinates, antialias):
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "antialias": antialias}
    for scales in SCALES:
        inputs = [image(2, 3, 5, 10), None, scaled(1, 1, *scales)]
        check_node("Resize", inputs, opset=19, attributes=attributes, rtol=1e-4, atol=1e-4)
    for sizes in ((7, 9), (3, 20)):
        inputs = [image(2, 3, 5, 10), None, None, np.array([2, 3, *sizes])]
        check_node("Resize", inputs, opset=19, attributes=attributes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("antialias", [0, 1])
def test_cubic_without_what_is_outside(check_node, antialias):
    attributes = {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5, "antialias": antialias}
    for scales in SCALES:
        inputs = [image(2, 3, 5, 10), None, scaled(1, 1, *scales)]
        check_node("Resize", inputs, opset=18, attributes=attributes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_crop_and_resize(check_node, mode):
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0,
    }
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    inputs = [image(1, 2, 4, 4), roi, None, np.array([1, 2, 3, 3])]
    check_node("Resize", inputs, opset=18, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.bool_])
def test_crop_and_resize_of_types_that_onnxruntime_lacks(node_model, dtype):
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 1.0}
    x, roi = abs(image(1, 2, 4, 4)).round(), np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    results = []
    for each in (x.astype(dtype), x.astype(dtype).astype(np.float32)):
        inputs = [each, roi, None, np.array([1, 2, 3, 3])]
        plan = compiler.compile(node_model("Resize", inputs, opset=18, attributes=attributes))
        (y,) = compiler.load(plan).run({"x0": each, "x1": roi, "x3": inputs[3]}).values()
        results.append(y)
    assert results[0].dtype == dtype and (results[1] == 1).any()
    np.testing.assert_array_equal(results[0], results[1].astype(dtype))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect(check_node, policy):
    attributes = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "linear"}
    inputs = [image(1, 2, 5, 9), None, None, np.array([7, 8])]
    check_node("Resize", inputs, opset=18, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [-2, -1], [3]])
def test_axes(check_node, axes):
    inputs = [image(1, 2, 5, 9), None, scaled(*[1.5, 2.5][: len(axes)])]
    check_node("Resize", inputs, opset=18, attributes={"axes": axes, "mode": "linear"}, rtol=1e-5, atol=1e-5)


def test_channels_last(check_node):
    for mode in ("linear", "nearest"):
        inputs = [image(2, 5, 6, 3), NO_SCALES, scaled(1, 2, 1.5, 1)]
        check_node("Resize", inputs, opset=13, attributes={"mode": mode}, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_integers(check_node, dtype):
    inputs = [image(1, 2, 5, 6, dtype=dtype), None, scaled(1, 1, 2, 2)]
    for mode in ("linear", "nearest"):
        check_node("Resize", inputs, opset=18, attributes={"mode": mode}, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float64, np.uint16])
def test_nearest_of_any_type(check_node, dtype):
    x = image(1, 2, 3, 4, dtype=dtype)
    inputs = [x, None, scaled(1, 1, 2, 2)]
    check_node("Resize", inputs, opset=18, rtol=0, atol=0, expected=[x.repeat(2, 2).repeat(2, 3)])


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(2.0, 3.0), (1.0, 1.5)])
def test_upsample(check_node, mode, scales):
    attributes = {"mode": mode, "scales": [1.0, 1.0, *scales]}
    check_node("Upsample", [image(1, 2, 3, 4)], opset=7, attributes=attributes, rtol=1e-5, atol=1e-5)
    for op_type, opset in (("Upsample", 9), ("Resize", 10)):
        inputs = [image(1, 2, 3, 4), scaled(1, 1, *scales)]
        check_node(op_type, inputs, opset=opset, attributes={"mode": mode}, rtol=1e-5, atol=1e-5)


def test_shrinking_before_opset_11(check_node):
    for mode in ("nearest", "linear"):
        inputs = [image(1, 2, 5, 6), scaled(1, 1, 0.6, 2)]
        check_node("Resize", inputs, opset=10, attributes={"mode": mode}, rtol=1e-5, atol=1e-5)


def test_half_pixel_of_tensorflow(check_node):
    attributes = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    inputs = [image(1, 2, 5, 6), NO_SCALES, scaled(1, 1, 1.6, 0.5)]
    check_node("Resize", inputs, opset=11, attributes=attributes, rtol=0, atol=0)


BETWEEN = integers(1, 16, 300, 500)

SCRATCH = [
    *rows(
        "float float16 uint8 int16",
        f"{IMAGES}, int64[4] k",
        'y = Resize<mode = "OP">(x, , , k)',
        "linear cubic nearest",
        **IMAGE,
        k=BETWEEN,
    ),
    *rows(
        "uint8",
        f"{IMAGES}, int64[4] k",
        'y = Resize<mode = "linear">(x, , , k)',
        c=1,
        n=4096,
        m=4096,
        k=integers(1, 1, 64, 64),
    ),
    *rows(
        "float uint8",
        "T[n, m] x, int64[2] k",
        'y = Resize<mode = "nearest">(x, , , k)',
        n=8,
        m=8,
        k=integers(8, 900_000),
    ),
    *rows("float", f"{IMAGES}, float[4] k", "y = Upsample(x, k)", opset=9, **IMAGE, k=np.float32([1, 1, 2, 2])),
]
