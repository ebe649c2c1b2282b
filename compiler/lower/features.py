"""CategoryMapper and FeatureVectorizer: the features of classical machine learning, domain `ai.onnx.ml`."""

from __future__ import annotations

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("CategoryMapper", newest=1, domain="ai.onnx.ml")
def category_mapper(node: Node, build: PlanBuilder) -> Value:
    """`CategoryMapper`: strings become integers, and integers become strings. A repeated key has its last value."""
    x, texts, numbers = node.input(0), node.strings("cats_strings"), node.ints("cats_int64s")
    text, number = node.string("default_string", "_Unused"), node.int("default_int64", -1)
    if len(texts) != len(numbers) or x.dtype not in ("string", "int64"):
        message = f"{len(texts)} strings, {len(numbers)} integers and an input of {x.dtype}"
        node.refuse("CC0202", f"CategoryMapper maps as many strings as integers; found {message}")
    strings, integers = np.array(texts, object), np.array(numbers, np.int64)
    default = np.array([text], object), np.array([number], np.int64)
    pairs = dict(zip(texts, numbers, strict=True)) if x.dtype == "string" else dict(zip(numbers, texts, strict=True))
    keys, values = (strings, integers) if x.dtype == "string" else (integers, strings)
    keys, values = (np.array(list(each), array.dtype) for each, array in ((pairs, keys), (pairs.values(), values)))
    unknown = default[1] if x.dtype == "string" else default[0]
    return build(ops.LabelEncoder(), x, *(build.constant(array) for array in (keys, values, unknown)))


@lowers("FeatureVectorizer", newest=1, domain="ai.onnx.ml")
def feature_vectorizer(node: Node, build: PlanBuilder) -> Value:
    """`FeatureVectorizer`: the rows of all inputs side by side, each cut or padded with zeros to its dimension."""
    widths = node.ints("inputdimensions")
    if len(widths) != len(node.inputs) or min(widths, default=0) < 1:
        node.refuse("CC0202", f"FeatureVectorizer needs a positive dimension for each input, found {widths}")
    columns = [_columns(node, build, node.input(index), width) for index, width in enumerate(widths)]
    return columns[0] if len(columns) == 1 else build(ops.Concat(axis=1), *columns)


def _columns(node: Node, build: PlanBuilder, x: Value, width: int) -> Value:
    """Rows of `width` numbers. The elements of a vector are one row."""
    shape = x.shape
    sizes = None if shape is None else shape[1:] if len(shape) > 1 else shape
    known = None if sizes is None else [size for size in sizes if isinstance(size, int)]
    if shape is None or not shape or known is None or len(known) != len(sizes or ()):
        node.refuse("CC0205", "FeatureVectorizer needs inputs with a known number of columns")
    found = int(np.prod(known, dtype=np.int64))
    x = converted(build, x, "float32")
    if len(shape) != 2:
        rows = [1, found] if len(shape) == 1 else [0, found]
        x = build(ops.Reshape(allow_zero=False), x, build.constant(np.array(rows)))
    if found == width:
        return x
    return build(ops.Pad(mode="constant"), x, build.constant(np.array([0, 0, 0, width - found])))
