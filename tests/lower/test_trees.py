"""Ensembles of decision trees against onnxruntime."""

import functools
import time

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import compiler
from tests.lower.forests import MODES, newest_of, nodes_of, rows_of, weights_of
from tests.lower.ml_node import FLOAT, INT64, STRING, check, model_of
from tests.scratch.row import rows

TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
INTS = {"classlabels_int64s": [7, 5, 9]}
STRINGS = {"classlabels_strings": ["a", "b", "c"]}


def regressor(trees, targets, seed=0, modes=MODES, **given):
    nodes, leaves = nodes_of(trees, seed, modes)
    weights = weights_of(leaves, seed, list(range(targets)), "target", True)
    return nodes | weights | {"n_targets": targets} | given


def classifier(trees, classes, labels, seed=0, negative=True, **given):
    nodes, leaves = nodes_of(trees, seed, ["BRANCH_LEQ"])
    return nodes | weights_of(leaves, seed, classes, "class", negative) | labels | given


def as_tensors(attributes, dtype):
    """The attributes of version 3 that hold numbers as tensors of the input's dtype."""
    floats = ("nodes_values", "target_weights", "class_weights", "base_values")
    return {
        f"{name}_as_tensor" if name in floats else name: (
            numpy_helper.from_array(np.array(value, dtype), name) if name in floats else value
        )
        for name, value in attributes.items()
        if value is not None
    }


@pytest.mark.parametrize("mode", MODES)
def test_tests_of_nodes(mode):
    for dtype in ("float32", "float64"):
        attributes = regressor(5, 1, modes=[mode])
        check("TreeEnsembleRegressor", [rows_of(60, 1, dtype)], FLOAT, 3, **attributes, **CLOSE)
        attributes = regressor(5, 1, modes=[mode], nodes_missing_value_tracks_true=None)
        check("TreeEnsembleRegressor", [rows_of(60, 1, dtype)], FLOAT, 3, **attributes, **CLOSE)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX", None])
@pytest.mark.parametrize("targets", [1, 3])
def test_aggregates(aggregate, targets):
    x = rows_of(40, 2, "float32")
    for base in (None, [0.5, -1.0, 0.25][:targets]):
        attributes = regressor(9, targets, aggregate_function=aggregate, base_values=base)
        check("TreeEnsembleRegressor", [x], FLOAT, 1, **attributes, **CLOSE)
        check("TreeEnsembleRegressor", [x], FLOAT, 3, **as_tensors(attributes, "float32"), **CLOSE)
        wide = as_tensors(attributes, "float64")
        check("TreeEnsembleRegressor", [x.astype(np.float64)], FLOAT, 3, **wide, **CLOSE)


@pytest.mark.parametrize("transform", [*TRANSFORMS, None])
@pytest.mark.parametrize("targets", [1, 3])
def test_transforms_of_regressors(transform, targets):
    attributes = regressor(6, targets, seed=3, post_transform=transform)
    check("TreeEnsembleRegressor", [rows_of(40, 2, "float32")], FLOAT, 3, **attributes, **CLOSE)


def test_probit():
    attributes = regressor(1, 2, seed=3, post_transform="PROBIT", aggregate_function="AVERAGE")
    attributes["target_weights"] = [abs(weight) + 0.1 for weight in attributes["target_weights"]]
    attributes["base_values"] = [0.05, 0.1]
    check("TreeEnsembleRegressor", [rows_of(20, 2, "float32")], FLOAT, 3, **attributes, rtol=1e-4, atol=1e-5)


@functools.cache
def large_regressor(trees, targets):
    return regressor(trees, targets, seed=4)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 130, 600, 1100])
@pytest.mark.parametrize("trees", [1, 70, 300])
def test_sizes(count, trees):
    for targets in (1, 2):
        attributes = large_regressor(trees, targets)
        check("TreeEnsembleRegressor", [rows_of(count, 5, "float32")], FLOAT, 3, **attributes, rtol=1e-4, atol=1e-4)


def test_results_are_the_same_for_all_numbers_of_threads():
    x = rows_of(3, 5, "float32")
    plan = compiler.compile(model_of("TreeEnsembleRegressor", [x], FLOAT, 3, True, **regressor(1500, 1, seed=4)))
    found = [compiler.load(plan, threads=threads).run({"x0": x})["y0"] for threads in (1, 2, 3)]
    alone = [compiler.load(plan, threads=2).run({"x0": row[None]})["y0"] for row in x]
    assert all(np.array_equal(found[0], other) for other in found)
    assert np.array_equal(np.concatenate(alone), found[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_classifiers_of_three_classes(dtype, transform):
    x = rows_of(40, 6, dtype)
    for base, version in ((None, 1), (None, 3), ([0.5, 0.25, -1.0], 3)):
        attributes = classifier(6, [0, 1, 2], INTS, base_values=base, post_transform=transform)
        check("TreeEnsembleClassifier", [x], [INT64, FLOAT], version, **attributes, **CLOSE)
    attributes = classifier(6, [0, 1, 2], STRINGS, base_values=[0.5, 0.25, -1.0], post_transform=transform)
    check("TreeEnsembleClassifier", [x], [STRING, FLOAT], 1, **attributes, **CLOSE)


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("classes", "bases"), [([0], [None, [0.3], [0.1, -0.3]]), ([1], [None, [0.3]]), ([0, 1], [None])]
)
def test_classifiers_of_two_classes(negative, transform, classes, bases):
    x = rows_of(40, 6, "float32")
    numbers = {"classlabels_int64s": [0, 1] if len(classes) == 2 else [5, 3]}
    texts = {"classlabels_strings": ["a", "b"]}
    for labels, kind, base in [*((numbers, INT64, base) for base in bases), (texts, STRING, bases[-1])]:
        attributes = classifier(3, classes, labels, 8, negative, base_values=base, post_transform=transform)
        check("TreeEnsembleClassifier", [x], [kind, FLOAT], 3, **attributes, **CLOSE)


def test_classes_that_a_row_does_not_reach():
    nodes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_weights": [-0.5, -0.25],
    }
    x = np.float32([[-1], [1]])
    check("TreeEnsembleClassifier", [x], [INT64, FLOAT], 3, **nodes, class_ids=[1, 2], **INTS)
    check("TreeEnsembleClassifier", [x], [INT64, FLOAT], 3, **nodes, class_ids=[0, 1], classlabels_int64s=[0, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_newest_operator(dtype, members, targets):
    attributes = newest_of(regressor(8, targets, seed=9), dtype, members) | {"n_targets": targets}
    kind = FLOAT if dtype == "float32" else TensorProto.DOUBLE
    x = rows_of(60, 1, dtype)
    x = np.round(x) if members else x  # onnxruntime drops fractions
    for aggregate in (None, 0, 1, 2, 3):
        check("TreeEnsemble", [x], kind, 5, **attributes, aggregate_function=aggregate, **CLOSE)
    for transform in range(4):
        check("TreeEnsemble", [x], kind, 5, **attributes, post_transform=transform, **CLOSE)


def test_float16():
    attributes = newest_of(regressor(8, 2, seed=9), "float16", True) | {"n_targets": 2}
    wide = newest_of(regressor(8, 2, seed=9), "float32", True) | {"n_targets": 2}
    x = rows_of(60, 1, "float16")
    plans = [
        compiler.compile(model_of("TreeEnsemble", [x], TensorProto.FLOAT16, 5, **attributes)),
        compiler.compile(model_of("TreeEnsemble", [x.astype(np.float32)], FLOAT, 5, **wide)),
    ]
    found = [compiler.load(plans[i]).run({"x0": x.astype(dtype)})["y0"] for i, dtype in enumerate(["f2", "f4"])]
    assert found[0].dtype == np.float16
    np.testing.assert_allclose(found[0], found[1], rtol=2e-3, atol=2e-3)


SMALL = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": [3, 0, 0]}, "no node 3 in tree 0, to which nodes_truenodeids leads"),
        ({"nodes_falsenodeids": [1, 0, 0]}, "lead to the same node"),
        ({"nodes_falsenodeids": [0, 0, 0]}, "leads back"),
        ({"nodes_nodeids": [0, 1, 1]}, "the same numbers of tree and node"),
        ({"nodes_treeids": [0, 1, 0]}, "not adjacent"),
        ({"nodes_values": [0.5]}, "3 nodes_modes, 1 nodes_values"),
        ({"nodes_modes": ["BRANCH_LEQ", "LEAF", "TWIG"]}, "unknown mode"),
        ({"nodes_featureids": [-1, 0, 0]}, "a feature with an index that no input has"),
        ({"nodes_featureids": [2, 0, 0]}, "a node reads feature 2, and X has 2 columns"),
        ({"target_ids": [0, 1]}, "outside of 0 to 0"),
        ({"target_nodeids": [1, 1]}, "a leaf of TreeEnsembleRegressor has no weight"),
        ({"target_nodeids": [1, 9]}, "no node 9 in tree 0, to which target_nodeids leads"),
        ({"n_targets": 0}, "0 targets"),
        ({"base_values": [1.0, 2.0]}, "1 targets and 2 base values"),
        ({"aggregate_function": "MEDIAN"}, "no aggregate_function 'MEDIAN'"),
        ({"post_transform": "SIN"}, "no post_transform 'SIN'"),
    ],
)
def test_refused_trees(changes, message):
    x = np.zeros((2, 2), np.float32)
    with pytest.raises(compiler.CompileError, match=message) as error:
        compiler.compile(model_of("TreeEnsembleRegressor", [x], FLOAT, 3, **SMALL | changes))
    assert "node" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": [9]}, "branches of TreeEnsemble lead to nodes or leaves that do not exist"),
        ({"tree_roots": [1]}, "tree_roots of TreeEnsemble lead"),
        ({"nodes_trueleafs": [0], "nodes_truenodeids": [0]}, "leads back"),
        ({"nodes_modes": numpy_helper.from_array(np.uint8([6]))}, "1 nodes that test for members, and 0 sets"),
        ({"nodes_splits": numpy_helper.from_array(np.float64([0]))}, "nodes_splits of TreeEnsemble is of float64"),
        ({"post_transform": 5}, "no post_transform 5"),
        (
            {"nodes_modes": numpy_helper.from_array(np.array(["a"], object))},
            "nodes_modes .* is of object, not of uint8",
        ),
        ({"nodes_modes": numpy_helper.from_array(np.float32([np.nan]))}, "nodes_modes .* is of float32"),
        ({"nodes_splits": numpy_helper.from_array(np.complex64([1j]))}, "complex64 is not a supported element type"),
        ({"leaf_targetids": [0, 2]}, "outside of 0 to 1"),
    ],
)
def test_refused_trees_of_the_newest_version(changes, message):
    attributes = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0],
        "nodes_modes": numpy_helper.from_array(np.uint8([0])),
        "nodes_splits": numpy_helper.from_array(np.float32([0])),
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 1],
        "leaf_weights": numpy_helper.from_array(np.float32([0.3, 0.6])),
    }
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model_of("TreeEnsemble", [np.zeros((2, 2), np.float32)], FLOAT, 5, **attributes | changes))


def test_a_large_corrupt_ensemble_is_refused_in_seconds():
    count = 100_000
    changes = {
        "nodes_treeids": list(range(count)),
        "nodes_nodeids": [0] * count,
        "nodes_featureids": [0] * count,
        "nodes_modes": ["BRANCH_LEQ"] * count,
        "nodes_values": [0.0] * count,
        "nodes_truenodeids": [0] * (count // 2) + [7] * (count // 2),
        "nodes_falsenodeids": [0] * count,
    }
    model = model_of("TreeEnsembleRegressor", [np.zeros((2, 2), np.float32)], FLOAT, 3, **SMALL | changes)
    begin = time.process_time()
    with pytest.raises(compiler.CompileError, match="no node 7 in tree 50000, to which nodes_truenodeids leads"):
        compiler.compile(model)
    assert time.process_time() - begin < 30  # a comparison of each node with all others takes minutes


def test_refused_classes():
    x = rows_of(4, 6, "float32")
    for attributes, message in [
        (classifier(2, [0, 1], {"classlabels_int64s": [5, 3]}), "onnxruntime answers 0 or 1"),
        (classifier(2, [0], {"classlabels_int64s": [5]}), "1 class labels, fewer than two"),
        (classifier(2, [0], {"classlabels_int64s": [0, 1]}, post_transform="PROBIT"), "for the post_transform PROBIT"),
        (classifier(2, [0, 1], {"classlabels_int64s": [0, 1]}, base_values=[0.5]), "does not define 1 base values"),
    ]:
        with pytest.raises(compiler.CompileError, match=message):
            compiler.compile(model_of("TreeEnsembleClassifier", [x], [INT64, FLOAT], 3, **attributes))


_TREE = """nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],
    nodes_values = [0.5, 0.0, 0.0],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]"""
_NEWEST = """tree_roots = [0], nodes_featureids = [0], nodes_modes = uint8[1] {0}, nodes_splits = T[1] {0.5},
    nodes_truenodeids = [0], nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], n_targets = 2,
    leaf_targetids = [0, 1], leaf_weights = T[2] {1.0, 2.0}"""
_WEIGHTS = "OF_treeids = [0, 0], OF_nodeids = [1, 2], OF_ids = [0, 0], OF_weights = [1.0, 2.0]"
SCRATCH = [
    *rows(
        "float double",
        "T[k, 2] x",
        f"y = ai.onnx.ml.TreeEnsembleRegressor<{_TREE}, {_WEIGHTS.replace('OF', 'target')}, n_targets = 1>(x)",
        k=400_000,
    ),
    *rows(
        "float int64",
        "T[k, 2] x",
        f"y, z = ai.onnx.ml.TreeEnsembleClassifier<{_TREE}, {_WEIGHTS.replace('OF', 'class')}, "
        "classlabels_int64s = [0, 1]>(x)",
        k=400_000,
    ),
    *rows("float double", "T[k, 2] x", f"y = ai.onnx.ml.TreeEnsemble<{_NEWEST}>(x)", k=400_000),
]
