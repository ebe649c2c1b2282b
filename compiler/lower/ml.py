"""Linear models and the preparation of features: classical machine learning, domain `ai.onnx.ml`."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers, remark
from compiler.lower.scores import (
    binary,
    both,
    class_labels,
    floats,
    labeled,
    largest,
    number,
    reduced,
    rows,
    transform,
    transformed,
)
from compiler.plan import PlanBuilder, Value, ops

_lowers = partial(lowers, domain="ai.onnx.ml")


@_lowers("LabelEncoder", newest=4)
def label_encoder(node: Node, build: PlanBuilder) -> Value:
    """`LabelEncoder`; version 1 has a list of strings, and encodes strings or integers, depending on the input.

    A repeated key has its first value, as in onnxruntime.
    """
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
    unknown = _default(node, values, default) if unknown is None else unknown.reshape(-1)
    if len(keys) != len(values) or unknown.size != 1:
        message = f"{len(keys)} keys, {len(values)} values and {unknown.size} defaults"
        node.refuse("CC0202", f"LabelEncoder needs as many values as keys, and one default; found {message}")
    if node.version >= 2:
        first = _first_places(keys)
        keys, values = keys[first], values[first]
    return build(ops.LabelEncoder(), x, *(build.constant(array) for array in (keys, values, unknown)))


def _first_places(keys: np.ndarray) -> list[int]:
    """The places of the keys without those that repeat an earlier key. All NaNs are one key."""
    places: dict[object, int] = {}
    for place, key in enumerate(keys.tolist()):
        places.setdefault(None if key != key else key, place)
    return [*places.values()]


@_lowers("CategoryMapper", newest=1)
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


@_lowers("FeatureVectorizer", newest=1)
def feature_vectorizer(node: Node, build: PlanBuilder) -> Value:
    """`FeatureVectorizer`: the rows of all inputs side by side, each cut or padded with zeros to its dimension."""
    widths = node.ints("inputdimensions")
    if len(widths) != len(node.inputs) or min(widths, default=0) < 1:
        node.refuse("CC0202", f"FeatureVectorizer needs a positive dimension for each input, found {widths}")
    columns = [_columns(node, build, node.input(index), width) for index, width in enumerate(widths)]
    return columns[0] if len(columns) == 1 else build(ops.Concat(axis=1), *columns)


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
    """`Binarizer`; integers are compared with the threshold rounded down, which gives the same result.

    A threshold that the input's integers cannot hold is above or below all of them.
    """
    x, threshold = node.input(0), node.float("threshold", 0.0)
    if not math.isfinite(threshold):
        node.refuse("CC0202", f"Binarizer's threshold is {threshold}, which is not finite")
    function: ops.BinaryFunction = "Greater"
    limit: float = threshold
    if not x.dtype.startswith("float"):
        numbers = np.iinfo(x.dtype)
        limit = min(math.floor(threshold), int(numbers.max))
        if limit < numbers.min:
            function, limit = "GreaterOrEqual", int(numbers.min)
    return converted(build, binary(build, function, x, build.constant(np.array(limit, x.dtype))), x.dtype)


@_lowers("LinearRegressor", newest=1)
def linear_regressor(node: Node, build: PlanBuilder) -> Value:
    """`LinearRegressor`; as in onnxruntime, intercepts have no effect if there is not one for each target."""
    x, targets, name = rows(node, build), node.int("targets", 1), transform(node)
    coefficients, intercepts = floats(node, "coefficients"), floats(node, "intercepts")
    scores = _products(node, build, x, coefficients, targets)
    if intercepts.size == targets:
        scores = binary(build, "Add", scores, build.constant(intercepts))
    return transformed(build, name if targets > 1 or name == "PROBIT" else "NONE", scores)


@_lowers("LinearClassifier", newest=1)
def linear_classifier(node: Node, build: PlanBuilder) -> tuple[Value, Value]:
    """`LinearClassifier`; with one score, class 1 wins if the score is positive.

    Its scores are then `1 − s, s`, or those of `−s, s` for the post_transform LOGISTIC, as in onnxruntime.
    """
    x, name, labels = rows(node, build), transform(node), class_labels(node, "classlabels_ints")
    coefficients, intercepts = floats(node, "coefficients"), floats(node, "intercepts")
    node.int("multi_class", 0)  # has no effect
    count = intercepts.size
    if not count or len(labels) != max(count, 2):
        node.refuse("CC0202", f"LinearClassifier has {len(labels)} class labels and {count} intercepts")
    scores = binary(build, "Add", _products(node, build, x, coefficients, count), build.constant(intercepts))
    if count > 1:
        return labeled(build, labels, largest(build, scores)), transformed(build, name, scores)
    is_second = converted(build, binary(build, "Greater", scores, number(build, 0)), "int64")
    winners = labeled(build, labels, build(ops.Squeeze(axes=[1]), is_second))
    return winners, both(node, build, name, scores, 1)


@_lowers("Scaler", newest=1)
def scaler(node: Node, build: PlanBuilder) -> Value:
    """`Scaler`: `(x − offset) · scale`, in float32; float64 is rounded after it."""
    x, offset, scale = node.input(0), floats(node, "offset"), floats(node, "scale")
    if offset.size != scale.size:
        node.refuse("CC0202", f"Scaler has {offset.size} offsets and {scale.size} scales")
    _check_columns(node, x, scale.size)
    x = converted(build, x, "float64" if x.dtype == "float64" else "float32")
    offset, scale = (array.astype(x.dtype) for array in (offset, scale))
    y = binary(build, "Mul", binary(build, "Sub", x, build.constant(offset)), build.constant(scale))
    return converted(build, y, "float32")


@_lowers("Normalizer", newest=1)
def normalizer(node: Node, build: PlanBuilder) -> Value:
    """`Normalizer`: each row divided by its norm, unless the norm is 0. The norm MAX is the largest element."""
    x, norm = node.input(0), node.string("norm", "MAX")
    if norm not in ("MAX", "L1", "L2") or x.rank not in (1, 2):
        node.refuse("CC0202", f"Normalizer needs the norm MAX, L1 or L2, and rank 1 or 2; found {norm}, {x.rank}")
    _check_numbers(node, x)
    x = converted(build, x, "float32")
    functions: dict[str, ops.Reduction] = {"MAX": "Max", "L1": "L1", "L2": "L2"}
    size = reduced(build, functions[norm], x)
    is_zero = binary(build, "Equal", size, number(build, 0))
    return build(ops.Where(), is_zero, x, binary(build, "Div", x, size))


@_lowers("Imputer", newest=1)
def imputer(node: Node, build: PlanBuilder) -> Value:
    """`Imputer`: each element that equals the replaced value, which may be NaN, becomes the imputed value."""
    x = node.input(0)
    _check_numbers(node, x)
    reals, integers = floats(node, "imputed_value_floats"), node.ints("imputed_value_int64s", None) or []
    real, integer = node.float("replaced_value_float", 0.0), node.int("replaced_value_int64", 0)
    is_real = x.dtype.startswith("float")
    imputed = reals if is_real else np.array(integers, np.int64)
    if bool(reals.size) == bool(integers) or not imputed.size:
        node.refuse("CC0202", f"Imputer needs imputed values of the input's kind, {x.dtype}, and no others")
    _check_columns(node, x, imputed.size)
    replaced = np.array(real) if is_real else np.array(integer, np.int64)
    imputed, replaced = (_held(node, array, x.dtype) for array in (imputed, replaced))
    if is_real and math.isnan(real):
        is_missing = build(ops.Unary(function="IsNaN"), x)
    else:
        is_missing = binary(build, "Equal", x, build.constant(replaced))
    return build(ops.Where(), is_missing, build.constant(imputed), x)


@_lowers("OneHotEncoder", newest=1)
def one_hot_encoder(node: Node, build: PlanBuilder) -> Value:
    """`OneHotEncoder`; numbers lose their fractions. Without `zeros`, a run with an unknown category fails."""
    x, zeros = node.input(0), node.flag("zeros", True)
    texts, numbers = node.strings("cats_strings", None) or [], node.ints("cats_int64s", None) or []
    if bool(texts) == bool(numbers) or (x.dtype == "string") != bool(texts):
        node.refuse("CC0202", f"OneHotEncoder needs either cats_strings or cats_int64s, as fits {x.dtype}")
    if x.dtype != "string":
        _check_numbers(node, x)
        x = converted(build, x, "int64")
    keys = np.array(texts, object) if texts else np.array(numbers, np.int64)
    count, places = len(keys), np.arange(len(keys))
    columns = [build.constant(array) for array in (keys, places, np.array([count]))]
    index = build(ops.LabelEncoder(), x, *columns)
    if not zeros:
        index = build(ops.Gather(axis=0), build.constant(places), index)  # fails for the index after the last
    depth, values = build.constant(np.array([count])), build.constant(np.array([0, 1], np.float32))
    return build(ops.OneHot(axis=-1), index, depth, values)


remark("LinearRegressor", "as in onnxruntime, with one target, only the `post_transform` PROBIT has an effect.")
remark("LinearClassifier", "as in onnxruntime, with one intercept, only the `post_transform` LOGISTIC has an effect.")
remark("Normalizer", "as in onnxruntime, the norm MAX is the largest element, not the largest magnitude.")


def _products(node: Node, build: PlanBuilder, x: Value, coefficients: np.ndarray, count: int) -> Value:
    """The products of each row with `count` rows of coefficients."""
    if count < 1 or not coefficients.size or coefficients.size % count:
        node.refuse("CC0202", f"{node.op_type} has {coefficients.size} coefficients for {count} scores")
    matrix = np.ascontiguousarray(coefficients.reshape(count, -1).T)
    return build(ops.MatMul(trans_a=False, trans_b=False), x, build.constant(matrix))


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


def _check_numbers(node: Node, x: Value) -> None:
    if x.dtype not in ("float32", "float64", "int32", "int64"):
        node.refuse("CC0202", f"{node.op_type} does not take {x.dtype}")


def _check_columns(node: Node, x: Value, count: int) -> None:
    """Refuses an input that does not have a number for each column, or one number for all."""
    _check_numbers(node, x)
    columns = x.shape[-1] if x.shape and len(x.shape) <= 2 else None
    if not count or (count > 1 and columns != count):
        node.refuse("CC0202", f"{node.op_type} has {count} numbers for {columns} columns")


def _held(node: Node, numbers: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers in the dtype; refuses integers that it does not hold."""
    if numbers.size and numbers.dtype.kind == "i":
        limits = np.iinfo(dtype)
        for number in (int(numbers.min()), int(numbers.max())):
            if not limits.min <= number <= limits.max:
                node.refuse("CC0202", f"{node.op_type} has the number {number}, which {dtype} does not hold")
    with np.errstate(over="ignore"):  # a number beyond the largest of a floating-point type is infinite
        return numbers.astype(dtype)


def _default(node: Node, values: np.ndarray, defaults: dict[str, np.ndarray]) -> np.ndarray:
    """The value of unknown keys, of the attribute `default_…` for the kind of the values."""
    kind = values.dtype.kind
    if kind not in defaults:
        node.refuse("CC0202", f"LabelEncoder needs the attribute default_tensor for values of {values.dtype}")
    return defaults[kind] if kind == "O" else _held(node, defaults[kind], values.dtype.name)


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
