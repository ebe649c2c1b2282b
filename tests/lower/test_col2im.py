"""Col2Im against onnxruntime."""

import numpy as np
import pytest

from tests.scratch.row import integers, rows


@pytest.mark.parametrize(
    ("x", "image", "kernel", "attributes"),
    [
        ((1, 5, 5), (5, 5), (1, 5), {}),
        ((2, 8, 9), (4, 4), (2, 2), {}),
        ((1, 9, 4), (5, 5), (3, 3), {"strides": [2, 2]}),
        ((1, 4, 16), (5, 5), (2, 2), {}),
        ((1, 4, 36), (5, 5), (2, 2), {"pads": [1, 1, 1, 1]}),
        ((1, 4, 9), (5, 5), (2, 2), {"dilations": [2, 2]}),
    ],
)
def test_windows_add_up(check_node, x, image, kernel, attributes):
    inputs = [np.random.default_rng(1).standard_normal(x).astype(np.float32), np.array(image), np.array(kernel)]
    check_node("Col2Im", inputs, opset=18, attributes=attributes, rtol=1e-6, atol=1e-6)


SCRATCH = [
    *rows(
        "float float16",
        "T[1, 1024, k] x, int64[2] a, int64[2] b",
        "y = Col2Im<strides = [4, 4]>(x, a, b)",
        k=4096,
        a=integers(256, 256),
        b=integers(4, 4),
    ),
]
