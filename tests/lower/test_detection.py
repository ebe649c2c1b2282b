"""Operators on boxes against onnxruntime."""

import numpy as np
import pytest

from tests.scratch.row import IMAGE, IMAGES, integers, rows

RANDOM = np.random.default_rng(10)
EXACT = {"rtol": 0, "atol": 0}


def regions(count, batch, size):
    corners = np.sort(RANDOM.uniform(-2, size + 2, (count, 2, 2)), axis=1).reshape(count, 4)
    return np.concatenate([RANDOM.integers(0, batch, (count, 1)), corners], 1).astype(np.float32)


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.0625])
@pytest.mark.parametrize("shape", [[1, 1], [2, 3], [7, 7]])
def test_max_roi_pool(check_node, shape, scale):
    x = RANDOM.standard_normal((2, 3, 9, 11)).astype(np.float32)
    rois = regions(8, 2, 10 / scale)
    attributes = {"pooled_shape": shape, "spatial_scale": scale}
    check_node("MaxRoiPool", [x, rois], opset=7, attributes=attributes, **EXACT)


SCRATCH = [
    *rows(
        "float",
        f"{IMAGES}, T[k, 4] r, int64[k] b",
        "y = RoiAlign<output_height = 9>(x, r, b)",
        **IMAGE,
        k=2000,
        b=np.zeros(2000, np.int64),
    ),
    *rows(
        "float",
        f"{IMAGES}, T[k, 5] r",
        "y = MaxRoiPool<pooled_shape = [9, 9]>(x, r)",
        **IMAGE,
        k=400,
        r=np.tile(np.float32([0, 0, 0, 9, 9]), (400, 1)),
    ),
    *rows(
        "float",
        "T[1, n, 4] x, T[1, c, n] z, int64[1] k",
        "y = NonMaxSuppression(x, z, k)",
        c=2,
        n=300_000,
        k=integers(5),
    ),
]
