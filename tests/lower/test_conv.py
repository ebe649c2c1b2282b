"""Conv and ConvTranspose against onnxruntime."""

import numpy as np
import pytest

import compiler

RANDOM = np.random.default_rng(7)


def noise(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


CONV = [
    # x, w, attributes
    ((1, 3, 9, 8), (4, 3, 3, 3), {}),
    ((2, 3, 9, 8), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ((1, 4, 9, 8), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
    ((1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 6, 9, 8), (6, 1, 2, 4), {"group": 6, "auto_pad": "SAME_LOWER"}),
    ((1, 3, 9, 8), (4, 3, 1, 1), {"auto_pad": "VALID", "strides": [3, 2]}),
    ((2, 3, 17), (5, 3, 4), {"pads": [3, 1], "strides": [2], "dilations": [3]}),
    ((1, 40, 33), (24, 40, 1), {"kernel_shape": [1]}),
    ((1, 3, 2, 2), (2, 3, 2, 2), {"strides": [5, 5]}),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("x", "w", "attributes"), CONV)
def test_conv(check_node, x, w, attributes, bias):
    inputs = [noise(*x), noise(*w)] + ([noise(w[0])] if bias else [])
    check_node("Conv", inputs, opset=11, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 11, 22])
def test_conv_versions(check_node, opset):
    inputs = [noise(1, 2, 5, 5), noise(3, 2, 3, 3)]
    attributes = {"auto_pad": "NOTSET", "kernel_shape": [3, 3]}
    check_node("Conv", inputs, opset=opset, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-3)])
def test_conv_dtypes(check_node, dtype, tolerance):
    x, w, b = noise(1, 2, 6, 5), noise(4, 1, 3, 2), noise(4)
    wide = [array.astype(dtype).astype(np.float64) for array in (x, w, b)]
    expected = np.zeros((1, 4, 4, 4))
    for o, i, j in np.ndindex(4, 3, 2):
        expected[0, o] += wide[1][o, 0, i, j] * wide[0][0, o // 2, i : i + 4, j : j + 4]
    expected += wide[2][:, None, None]
    inputs = [array.astype(dtype) for array in (x, w, b)]
    expected = expected.astype(dtype)
    check_node("Conv", inputs, opset=11, attributes={"group": 2}, expected=[expected], rtol=tolerance, atol=tolerance)


TRANSPOSED = [
    ((1, 3, 5, 4), (3, 4, 3, 3), {}),
    ((2, 3, 5, 4), (3, 4, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 4), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "pads": [1, 2, 1, 0], "output_padding": [2, 1]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [2, 3], "dilations": [2, 2], "pads": [1, 0, 0, 1]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "output_shape": [16, 9]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "output_shape": [14, 8], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 5, 4), (3, 4, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 5, 4), (3, 4, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 3, 9), (3, 2, 16), {"strides": [8], "pads": [4, 4]}),
    ((1, 3, 9), (3, 2, 2), {"strides": [4]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED)
def test_conv_transpose(check_node, x, w, attributes):
    inputs = [noise(*x), noise(*w), noise(w[1] * attributes.get("group", 1))]
    check_node("ConvTranspose", inputs, opset=11, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "expected"),
    [
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"kernel_shape": [2, 2]}, "kernel_shape"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"strides": [0, 1]}, "strides"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"group": 0}, "groups"),
        ("Conv", [(1, 2, 5, 5), (3, 1, 3, 3)], {}, "channels"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"dilations": [1, 4], "pads": [0, 1, 0, 1]}, "wider than the input"),
        ("ConvTranspose", [(1, 2, 5, 5), (2, 1, 3, 3)], {"output_padding": [1]}, "output_padding"),
        ("ConvTranspose", [(1, 2, 5, 5), (2, 1, 3, 3)], {"output_shape": [1]}, "output_shape"),
    ],
)
def test_refused(node_model, operator, shapes, attributes, expected):
    model = node_model(operator, [noise(*shape) for shape in shapes], opset=11, attributes=attributes)
    with pytest.raises(compiler.CompileError, match=expected):
        compiler.compile(model)
