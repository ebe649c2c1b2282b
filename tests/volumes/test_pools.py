"""Poolings and normalizations of three spatial dimensions, lowered: tables of attributes, and random attributes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.lower.conftest import reference
from tests.volumes.comparison import check, image, is_valid, model_of, refusal_of

X = image(2, 3, 5, 6, 7)
WINDOWS = [
    {"kernel_shape": [2, 3, 2]},
    {"kernel_shape": [2, 3, 2], "strides": [2, 2, 1], "pads": [1, 1, 0, 0, 1, 1]},
    {"kernel_shape": [2, 3, 2], "strides": [2, 2, 3], "ceil_mode": 1},
    {"kernel_shape": [1, 3, 2], "strides": [1, 2, 1], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3, 1, 1], "strides": [2, 1, 1], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2, 2], "dilations": [2, 1, 3]},
    {"kernel_shape": [1, 1, 1]},
]


@pytest.mark.parametrize("attributes", WINDOWS)
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_windows(op_type, attributes):
    check(op_type, [X], **attributes)


@pytest.mark.parametrize("attributes", WINDOWS[:2])
def test_early_versions(attributes):
    check("MaxPool", [X], opset=8, **attributes)
    check("AveragePool", [X], opset=7, **attributes)


@pytest.mark.parametrize("attributes", WINDOWS)
def test_indices(attributes):
    check("MaxPool", [X], outputs=2, tolerance=0, **attributes)


def test_the_first_of_equal_maxima():
    check("MaxPool", [np.zeros((1, 2, 4, 4, 4), np.float32)], outputs=2, tolerance=0, kernel_shape=[2, 3, 2])


@pytest.mark.parametrize("p", [1, 3])
def test_exponents(p):
    check("LpPool", [X], p=p, kernel_shape=[2, 3, 2])
    check("GlobalLpPool", [X], p=p, forms=["constants"])


@pytest.mark.parametrize("op_type", ["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])
def test_all_elements(op_type):
    check(op_type, [X])
    [expected] = reference(model_of(op_type, [X], "inputs", 20, 1, {}), {"x0": X})
    check(op_type, [X[..., None]], forms=["inputs", "symbols"], expected=[expected[..., None]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float64, np.float16])
def test_other_types(dtype):
    check("MaxPool", [(10 * X).astype(dtype)], tolerance=0, **WINDOWS[1])


NUMBERS = [np.abs(image(3, seed=seed)) + 0.5 for seed in range(4)]


@pytest.mark.parametrize("opset", [7, 9, 15, 20])
def test_batch_normalization(opset):
    check("BatchNormalization", [X, *NUMBERS], opset=opset, epsilon=1e-3)


def test_batch_normalization_with_statistics_of_its_input():
    check("BatchNormalization", [X, *NUMBERS], outputs=3, training_mode=1, forms=["inputs", "constants"])


@pytest.mark.parametrize("opset", [6, 22])
def test_instance_normalization(opset):
    check("InstanceNormalization", [X, *NUMBERS[:2]], opset=opset, epsilon=1e-3)


steps = st.lists(st.integers(1, 3), min_size=3, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["MaxPool", "AveragePool", "LpPool"]),
    st.fixed_dictionaries(
        {"kernel_shape": steps, "strides": steps, "dilations": steps, "ceil_mode": st.integers(0, 1)},
        optional={"pads": st.lists(st.integers(0, 1), min_size=6, max_size=6)},
    ),
    st.tuples(*[st.integers(3, 8)] * 3),
    st.sampled_from(["constants", "symbols"]),
    st.integers(0, 1),
)
def test_random_windows(op_type, attributes, sizes, form, counts):
    if op_type == "AveragePool":
        attributes["count_include_pad"] = counts
    x = image(1, 2, *sizes)
    assume(is_valid(model_of(op_type, [x], "inputs", 22, 1, attributes), {"x0": x}))
    # A window that covers only padding has another result than in onnxruntime (docs/operators.md).
    reaches = zip(attributes["kernel_shape"], attributes["dilations"], sizes, strict=True)
    assume(all((kernel - 1) * dilation + 1 <= size for kernel, dilation, size in reaches))
    check(op_type, [x], opset=22, forms=[form], **attributes)


def test_what_is_not_lowered():
    reasons = [
        refusal_of("MaxPool", [X], outputs=2, kernel_shape=[2, 2, 2], storage_order=1),
        refusal_of("MaxPool", [X], kernel_shape=[2, 2, 2], strides=[1]),
        refusal_of("AveragePool", [X[..., None]], kernel_shape=[2, 2, 2, 1]),
    ]
    assert [reason.partition("it is not lowered, because ")[2] for reason in reasons] == [
        "its indices count columns before rows (storage_order)",
        "strides [1] are not a positive number for each of 3 axes",
        "its input has 6 dimensions",
    ]


def test_operators_without_a_lowering():
    indices = np.zeros((2, 3, 5, 6, 7), np.int64)
    assert refusal_of("MaxUnpool", [X, indices], "inputs", kernel_shape=[2, 2, 2], strides=[2, 2, 2]) == (
        "3-D max unpooling is not supported (kernel 2×2×2)"
    )
