"""LabelEncoder, ArrayFeatureExtractor, Binarizer: classical machine learning, domain `ai.onnx.ml`."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_lowers = partial(lowers, domain="ai.onnx.ml")


@_lowers("LabelEncoder", newest=4)
def label_encoder(node: Node, build: PlanBuilder) -> Value:
    """`LabelEncoder`; version 1 has a list of strings, and encodes strings or integers, depending on the input."""
    x = node.input(0)
    default = {
        "O": _strings([node.string("default_string", "_Unused")]),
        "i": np.array([node.int("default_int64", -1)]),
    }
    if node.version < 2:
        classes = _strings(node.strings("classes_strings"))
        keys, values = classes, np.arange(len(classes))
        if x.dtype != "string":
            keys, values = values, keys
    else:
        keys, values = _column(node, "keys"), _column(node, "values")
        default["f"] = np.array([node.float("default_float", -0.0)])
    unknown = node.tensor("default_tensor", None) if node.version >= 4 else None
    unknown = default[values.dtype.kind].astype(values.dtype) if unknown is None else unknown.reshape(-1)
    if len(keys) != len(values) or unknown.size != 1:
        message = f"{len(keys)} keys, {len(values)} values and {unknown.size} defaults"
        node.refuse("CC0202", f"LabelEncoder needs as many values as keys, and one default; found {message}")
    return build(ops.LabelEncoder(), x, *(build.constant(array) for array in (keys, values, unknown)))


@_lowers("ArrayFeatureExtractor", newest=1)
def array_feature_extractor(node: Node, build: PlanBuilder) -> Value:
    """`ArrayFeatureExtractor`; a vector counts as one row, as in onnxruntime."""
    x, indices = node.input(0), node.input(1)
    if x.rank is None:
        node.refuse("CC0205", "the rank of ArrayFeatureExtractor's input is not known")
    if x.rank == 1:
        x = build(ops.Unsqueeze(axes=[0]), x)
    return build(ops.Gather(axis=-1), x, build(ops.Reshape(allow_zero=True), indices, build.constant(np.array([-1]))))


@_lowers("Binarizer", newest=1)
def binarizer(node: Node, build: PlanBuilder) -> Value:
    """`Binarizer`; integers are compared with the threshold rounded down, which gives the same result."""
    x, threshold = node.input(0), node.float("threshold", 0.0)
    if not math.isfinite(threshold):
        node.refuse("CC0202", f"Binarizer's threshold is {threshold}, which is not finite")
    limit = np.array(threshold if x.dtype.startswith("float") else math.floor(threshold), x.dtype)
    return converted(build, build(ops.Binary(function="Greater"), x, build.constant(limit)), x.dtype)


def _column(node: Node, name: str) -> np.ndarray:
    """The value of the only attribute `name_…` of the node; refuses none or several."""
    given = [
        None
        if (tensor := node.tensor(f"{name}_tensor", None) if node.version >= 4 else None) is None
        else tensor.reshape(-1),
        None if (texts := node.strings(f"{name}_strings", None)) is None else _strings(texts),
        None if (numbers := node.ints(f"{name}_int64s", None)) is None else np.array(numbers, np.int64),
        None if (reals := node.floats(f"{name}_floats", None)) is None else np.array(reals, np.float32),
    ]
    columns = [array for array in given if array is not None]
    if len(columns) != 1:
        node.refuse("CC0202", f"LabelEncoder needs one attribute {name}_…, found {len(columns)}")
    return columns[0]


def _strings(texts: list[str]) -> np.ndarray:
    return np.array(texts, object)
