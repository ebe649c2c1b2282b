"""Operators on boxes against onnxruntime."""

import numpy as np
import pytest

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
