"""GridSample against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest

import compiler
from tests.scratch.row import rows

RANDOM = np.random.default_rng(5)
CLOSE = {"rtol": 1e-5, "atol": 2e-5}


def image_and_grid(dtype=np.float32):
    x = RANDOM.standard_normal((2, 3, 5, 7)).astype(dtype)
    grid = RANDOM.uniform(-2.5, 2.5, (2, 4, 6, 2)).astype(dtype)
    grid[0, 0, :5] = [[-1, -1], [1, 1], [0, 0], [0.2, -0.2], [-1, 1]]
    return [x, grid]


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("opset", "mode"), [(16, "bilinear"), (16, "bicubic"), (20, "nearest"), (20, "linear"), (20, "cubic")]
)
def test_modes(check_node, opset, mode, padding_mode, align_corners):
    attributes = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    check_node("GridSample", image_and_grid(), opset=opset, attributes=attributes, **CLOSE)


def test_default_mode(check_node):
    check_node("GridSample", image_and_grid(), opset=16, **CLOSE)
    check_node("GridSample", image_and_grid(), opset=20, **CLOSE)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_dtypes(check_node, mode):
    x, grid = image_and_grid()
    attributes = {"mode": mode, "padding_mode": "border"}
    for dtype, tolerance in [(np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2), (np.float64, 1e-6)]:
        coarse = x.astype(dtype)
        model = run_model("GridSample", [coarse.astype(np.float32), grid], attributes)
        expected = [model.astype(dtype)]
        check_node(
            "GridSample", [coarse, grid], opset=22, attributes=attributes, expected=expected, rtol=tolerance, atol=1e-5
        )


def run_model(op_type, inputs, attributes):
    from tests.lower.conftest import node_model, reference, with_output_types

    model = with_output_types(node_model(op_type, inputs, opset=20, attributes=attributes), inputs[:1])
    return reference(model, {f"x{i}": array for i, array in enumerate(inputs)})[0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, object])
def test_any_dtype_can_be_taken(check_node, dtype):
    x = np.arange(12).reshape(1, 1, 3, 4)
    grid = np.float32([[[[-1, -1], [0.3, 0.1], [1, 1]]]])
    expected = [np.array([[[[0, 6, 11]]]]).astype(dtype)]
    expected = [expected[0].astype(str).astype(object)] if dtype is object else expected
    x = x.astype(str).astype(object) if dtype is object else x.astype(dtype)
    attributes = {"mode": "nearest", "padding_mode": "border"}
    check_node("GridSample", [x, grid], opset=20, attributes=attributes, expected=expected, rtol=0, atol=0)


def test_three_dimensions_are_refused(node_model):
    x, grid = np.zeros((1, 1, 2, 2, 2), np.float32), np.zeros((1, 2, 2, 2, 3), np.float32)
    with pytest.raises(compiler.CompileError, match="3-D grid sampling is not supported"):
        compiler.compile(node_model("GridSample", [x, grid], opset=20))


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 3, 4, 5]])
def test_affine_grid(check_node, size, align_corners):
    theta = RANDOM.standard_normal((2, len(size) - 2, len(size) - 1)).astype(np.float32)
    check_node("AffineGrid", [theta, np.array(size)], opset=20, attributes={"align_corners": align_corners}, **CLOSE)


SCRATCH = [
    *rows(
        "float",
        "T[1, 4, n, m] x, T[1, k, k, 2] g",
        'y = GridSample<mode = "OP">(x, g)',
        "linear nearest cubic",
        k=600,
        n=600,
        m=600,
    ),
]
