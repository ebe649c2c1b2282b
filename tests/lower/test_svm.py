"""Support vector machines against onnxruntime."""

import numpy as np
import pytest

import compiler
from tests.lower.ml_node import FLOAT, INT64, STRING, check, model_of
from tests.scratch.row import rows

DRAWN = np.random.default_rng(0)
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID", None]
ROWS = DRAWN.normal(size=(23, 3)).astype(np.float32)
WHOLE = DRAWN.integers(-2, 3, (23, 3))
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def floats(count, seed):
    return [float(number) for number in np.random.default_rng(seed).normal(size=count).astype(np.float32)]


def parameters(kernel):
    return {"kernel_type": kernel, "kernel_params": [0.5, 0.25, 3.0]}


def classifier(counts, kernel, chances=False, **given):
    """Attributes of a classifier with these numbers of vectors of its classes."""
    pairs = len(counts) * (len(counts) - 1) // 2
    found = {
        **parameters(kernel),
        "vectors_per_class": counts,
        "support_vectors": floats(3 * sum(counts), 1),
        "coefficients": floats((len(counts) - 1) * sum(counts), 2),
        "rho": floats(pairs, 3),
    }
    if chances:
        found |= {"prob_a": [-1.5, -0.5, -1.0, -2.0, -1.1, -0.7][:pairs], "prob_b": floats(pairs, 4)}
    return found | given


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [None, 0, 1])
def test_regressors(kernel, one_class):
    attributes = parameters(kernel) | {"coefficients": floats(5, 1), "rho": [0.1], "one_class": one_class}
    check("SVMRegressor", [ROWS], FLOAT, 1, **attributes, n_supports=5, support_vectors=floats(15, 2), **CLOSE)
    attributes["coefficients"] = floats(3, 1)
    for transform in ("NONE", "LOGISTIC"):
        check("SVMRegressor", [ROWS], FLOAT, 1, **attributes, n_supports=0, post_transform=transform, **CLOSE)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[3, 2], [4, 1, 3], [2, 3, 1, 2]])
@pytest.mark.parametrize("chances", [False, True])
def test_classifiers(kernel, counts, chances):
    """Every transform of the scores with one kernel, which computes the scores before; texts with one transform."""
    numbers, texts = (
        {"classlabels_ints": [5, 3, 7, 1][: len(counts)]},
        {"classlabels_strings": list("abcd")[: len(counts)]},
    )
    for transform in (None, "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO") if kernel == "RBF" else (None,):
        attributes = classifier(counts, kernel, chances, post_transform=transform)
        check("SVMClassifier", [ROWS], [INT64, FLOAT], 1, **attributes, **numbers, **CLOSE)
    check("SVMClassifier", [ROWS], [STRING, FLOAT], 1, **classifier(counts, kernel, chances), **texts, **CLOSE)


@pytest.mark.parametrize("x", [ROWS.astype(np.float64), WHOLE, WHOLE.astype(np.int32)], ids=lambda x: x.dtype.name)
def test_dtypes(x):
    for kernel in ("LINEAR", "RBF"):
        attributes = classifier([3, 2, 2], kernel) | {"classlabels_ints": [0, 1, 2]}
        check("SVMClassifier", [x], [INT64, FLOAT], 1, **attributes, **CLOSE)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("transform", [None, "LOGISTIC", "SOFTMAX"])
def test_classifiers_without_vectors(classes, sign, transform):
    numbers = [sign * abs(number) if sign else number for number in floats(3 * classes, 5)]
    labels = {"classlabels_ints": [5, 3, 7][:classes]}
    attributes = {"coefficients": numbers, "rho": [0.2], "post_transform": transform, **parameters("LINEAR"), **labels}
    check("SVMClassifier", [ROWS], [INT64, FLOAT], 1, **attributes, **CLOSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": [0.1]}, "needs 3 numbers rho, prob_a and prob_b, found 1 rho"),
        ({"prob_a": [0.1, 0.2, 0.3]}, "as many numbers prob_a as prob_b"),
        ({"coefficients": [0.1] * 5}, "5 coefficients in 2 rows"),
        ({"coefficients": [0.1] * 12}, "7 vectors and 6 coefficients each"),
        ({"support_vectors": [0.1] * 5}, "5 support_vectors in 7 rows"),
        ({"vectors_per_class": [3, 4]}, "3 class labels and vectors of 2 classes"),
        ({"kernel_type": "WAVE"}, "no kernel 'WAVE'"),
        ({"kernel_params": [1.0]}, "no kernel 'RBF' with 1 parameters"),
        ({"classlabels_ints": [1]}, "1 class labels, fewer than two"),
        ({"classlabels_ints": [*range(100_000)], "vectors_per_class": [1] * 100_000}, "needs 4999950000 numbers rho"),
        ({"vectors_per_class": [1, -1, 0]}, "3 class labels and vectors of 3 classes"),
    ],
)
def test_refusals(changes, message):
    attributes = classifier([3, 2, 2], "RBF") | {"classlabels_ints": [0, 1, 2]} | changes
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model_of("SVMClassifier", [ROWS], [INT64, FLOAT], 1, **attributes))


def test_numbers_beyond_float32_are_infinite():
    attributes = {"coefficients": [3e38, 3e38, 1.0], "rho": [0.0], "support_vectors": [3e38] * 9, "n_supports": 3}
    model = model_of("SVMRegressor", [ROWS], FLOAT, 1, **attributes, **parameters("LINEAR"))
    y = compiler.load(compiler.compile(model)).run({"x0": np.ones_like(ROWS)})["y0"]
    assert np.isposinf(y).all()


def test_columns_that_do_not_fit():
    attributes = classifier([3, 2, 2], "RBF") | {"classlabels_ints": [0, 1, 2]}
    with pytest.raises(compiler.CompileError, match="two matrices of equally many columns"):
        compiler.compile(model_of("SVMClassifier", [ROWS[:, :2]], [INT64, FLOAT], 1, **attributes))


_VECTORS = "kernel_params = [0.5, 0.25, 3.0], support_vectors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"
_CLASSES = (
    "vectors_per_class = [1, 1, 1], rho = [0.1, 0.2, 0.3], classlabels_ints = [0, 1, 2], "
    "coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], prob_a = [-1.0, -1.0, -1.0], prob_b = [0.0, 0.0, 0.0]"
)
SCRATCH = [
    *rows(
        "float",
        "T[k, 2] x",
        f'y = ai.onnx.ml.SVMRegressor<n_supports = 3, rho = [0.5], coefficients = [1.0, 2.0, 3.0], kernel_type = "OP", '
        f"{_VECTORS}>(x)",
        "LINEAR POLY RBF SIGMOID",
        k=300_000,
    ),
    *rows(
        "float double int64",
        "T[k, 2] x",
        f'OP = ai.onnx.ml.SVMClassifier<kernel_type = "RBF", {_CLASSES}, {_VECTORS}>(x)',
        "y,z z,y",
        k=300_000,
    ),
]
