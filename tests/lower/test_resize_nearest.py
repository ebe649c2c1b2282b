"""Resize by `nearest`, with coordinates on elements and in the middle of two: each index is onnxruntime's or exact."""

import itertools
import math
from fractions import Fraction

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import compiler

COORDINATES = ["asymmetric", "half_pixel"]
ROUNDINGS = ["floor", "round_prefer_floor", "round_prefer_ceil"]
KNOWN = [(9, 1176), (30, 549), (31, 2918), (20, 698), (59, 132), (2, 3000), (59, 3000), (3, 2)]


def resizes():
    """Old and new sizes; of two in three, some coordinates are exactly in the middle of two elements."""
    rng = np.random.default_rng(0)
    free = [(int(rng.integers(2, 60)), int(rng.integers(2, 3001))) for _ in range(38)]
    multiples = [(old, 2 * old * int(rng.integers(1, 3001 // (2 * old) + 1))) for old, _ in free]
    thirds = [(old, max(2, 2 * old * int(rng.integers(1, 1500 // old + 1)) // 3)) for old, _ in free]
    return [*KNOWN, *free, *multiples, *thirds]


def model(coordinates, rounding, given):
    """A Resize of the last axis, whose scales or sizes are an input."""
    kind = onnx.TensorProto.INT64 if given == "sizes" else onnx.TensorProto.FLOAT
    names = ["x", "", "given"] if given == "scales" else ["x", "", "", "given"]
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    node = helper.make_node("Resize", names, ["y"], mode="nearest", **attributes)
    inputs = [("x", onnx.TensorProto.INT32, [1, 1, 1, "n"]), ("given", kind, [4])]
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 1, 1, "m"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def exact(old, new, coordinates, rounding):
    """The indices by rational arithmetic."""
    middle = Fraction(1, 2)
    ratio = Fraction(old, new)
    offset = middle if coordinates == "half_pixel" else Fraction(0)
    rounded = {
        "floor": math.floor,
        "round_prefer_floor": lambda x: math.ceil(x - middle),
        "round_prefer_ceil": lambda x: math.floor(x + middle),
    }[rounding]
    places = [rounded((at + offset) * ratio - offset) for at in range(new)]
    return np.clip(places, 0, old - 1)


@pytest.mark.parametrize("given", ["sizes", "scales"])
@pytest.mark.parametrize(("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS)))
def test_every_index_is_that_of_onnxruntime_or_the_exact_one(coordinates, rounding, given):
    built = model(coordinates, rounding, given)
    session = compiler.load(compiler.compile(built))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    other = onnxruntime.InferenceSession(built.SerializeToString(), options, providers=["CPUExecutionProvider"])
    compared = 0
    for old, new in resizes():
        value = np.array([1, 1, 1, new]) if given == "sizes" else np.array([1, 1, 1, new / old], np.float32)
        inputs = {"x": np.arange(old, dtype=np.int32).reshape(1, 1, 1, old), "given": value}
        ours, theirs = session.run(inputs)["y"].ravel(), other.run(None, inputs)[0].ravel()
        assert ours.shape == theirs.shape, (old, new)
        differs = ours != theirs
        if differs.any():
            right = ours == exact(old, len(ours), coordinates, rounding)
            assert right[differs].all(), (old, new, np.flatnonzero(differs & ~right))
        compared += len(ours)
    assert compared > 100_000
