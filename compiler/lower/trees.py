"""TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble: ensembles of decision trees, domain `ai.onnx.ml`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from compiler.ir import dtypes
from compiler.lower.cast import converted
from compiler.lower.forest import LEAF, MEMBER, MODES, Forest
from compiler.lower.node import Node, lowers, remark
from compiler.lower.scores import class_labels, labeled
from compiler.plan import PlanBuilder, Value, ops

Array = np.ndarray[Any, Any]

_lowers = partial(lowers, domain="ai.onnx.ml")
_TRANSFORMS: dict[str, ops.ScoreTransform] = {
    "NONE": "none",
    "LOGISTIC": "logistic",
    "SOFTMAX": "softmax",
    "SOFTMAX_ZERO": "softmax_zero",
    "PROBIT": "probit",
}
_AGGREGATES: dict[str, ops.Aggregate] = {"AVERAGE": "average", "SUM": "sum", "MIN": "min", "MAX": "max"}


@_lowers("TreeEnsembleRegressor", newest=3)
def tree_ensemble_regressor(node: Node, build: PlanBuilder) -> Value:
    """`TreeEnsembleRegressor`; the scores are float32 for every input."""
    x, kind = _input(node, build)
    targets = _targets(node, node.int("n_targets", 0))
    forest, base = _forest(node, kind, "target"), _floats(node, "base_values", kind)
    if base.size not in (0, targets):
        node.refuse("CC0202", f"TreeEnsembleRegressor has {targets} targets and {base.size} base values")
    transform = _transform(node, node.string("post_transform", "NONE"), targets)
    op = ops.TreeEnsemble(
        targets=targets, aggregate=_aggregate(node, node.string("aggregate_function", "SUM")), transform=transform
    )
    return converted(build, build(op, x, *_constants(node, build, forest, targets, base)), "float32")


@_lowers("TreeEnsembleClassifier", newest=3)
def tree_ensemble_classifier(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`TreeEnsembleClassifier`; the scores are float32 for every input."""
    x, kind = _input(node, build)
    labels = class_labels(node, "classlabels_int64s")
    if len(labels) < 2:
        node.refuse("CC0202", f"TreeEnsembleClassifier has {len(labels)} class labels, fewer than two")
    forest, base = _forest(node, kind, "class"), _floats(node, "base_values", kind)
    transform = _transform(node, node.string("post_transform", "NONE"), len(labels))
    op = ops.TreeEnsemble(
        targets=len(labels),
        aggregate="sum",
        transform=transform,
        classes="largest" if len(labels) > 2 else _two_classes(node, forest, base, labels),
    )
    if len(labels) > 2 and base.size not in (0, len(labels)):
        node.refuse("CC0202", f"TreeEnsembleClassifier has {len(labels)} classes and {base.size} base values")
    if op.classes != "largest" and transform == "probit" and (forest.targets == 0).any():
        node.refuse("CC0202", "onnxruntime does not define the scores of two classes for the post_transform PROBIT")
    constants = _constants(node, build, forest, len(labels), base)
    scores, places = build(op, x, *constants, outputs=2)
    return labeled(build, labels, places), converted(build, scores, "float32")


@_lowers("TreeEnsemble", newest=5)
def tree_ensemble(node: Node, build: PlanBuilder) -> Value:
    """`TreeEnsemble`; float16 is computed in float32."""
    x, result = node.input(0), node.input(0).dtype
    if result not in ("float32", "float64", "float16"):
        node.refuse("CC0202", f"TreeEnsemble needs floating-point numbers, found {result}")
    kind = "float64" if result == "float64" else "float32"
    targets = _targets(node, node.int("n_targets", 0))
    transforms, aggregates = list(_TRANSFORMS), list(_AGGREGATES)
    transform, aggregate = node.int("post_transform", 0), node.int("aggregate_function", 1)
    if not (0 <= transform < len(transforms) and 0 <= aggregate < len(aggregates)):
        node.refuse("CC0202", f"TreeEnsemble has no post_transform {transform} and aggregate_function {aggregate}")
    op = ops.TreeEnsemble(
        targets=targets,
        aggregate=_aggregate(node, aggregates[aggregate]),
        transform=_transform(node, transforms[transform], targets),
    )
    forest = _newest_forest(node, result, kind)
    base = np.zeros(0, dtypes.numpy_dtype(kind))
    x = converted(build, x, kind)
    return converted(build, build(op, x, *_constants(node, build, forest, targets, base)), result)


remark(
    "TreeEnsemble",
    "as in onnxruntime, `post_transform` 1 is the logistic function and 2 is softmax; the standard numbers them the "
    "other way round. With one target, only PROBIT has an effect. A number with a fraction is not a member of a "
    "set of integers; onnxruntime drops the fraction if the set is large.",
)
remark(
    "TreeEnsembleRegressor",
    "as in onnxruntime, with one target, only the `post_transform` PROBIT has an effect. If a row reaches no leaf with "
    "a weight of the target, the op does not add the base value to its score.",
)
remark(
    "TreeEnsembleClassifier",
    "as in onnxruntime, if a row has scores for both of two classes, the result is the second class if its score is "
    "above 0, and otherwise the first class. It does not matter which score is larger.",
)


def _input(node: Node, build: PlanBuilder) -> tuple[Value, str]:
    """The rows, and the dtype to compute in."""
    x = node.input(0)
    if x.dtype not in ("float32", "float64", "int32", "int64"):
        node.refuse("CC0202", f"{node.op_type} does not take {x.dtype}")
    kind = "float64" if x.dtype == "float64" else "float32"
    return converted(build, x, kind), kind


def _targets(node: Node, targets: int) -> int:
    if targets < 1:
        node.refuse("CC0202", f"{node.op_type} has {targets} targets")
    return targets


def _transform(node: Node, name: str, targets: int) -> ops.ScoreTransform:
    if name not in _TRANSFORMS:
        node.refuse("CC0202", f"{node.op_type} has no post_transform {name!r}")
    return "none" if targets == 1 and name != "PROBIT" else _TRANSFORMS[name]


def _aggregate(node: Node, name: str) -> ops.Aggregate:
    if name not in _AGGREGATES:
        node.refuse("CC0202", f"{node.op_type} has no aggregate_function {name!r}")
    return _AGGREGATES[name]


def _two_classes(node: Node, forest: Forest, base: Array, labels: Array) -> ops.Classes:
    """How one of two classes follows from the scores, as in onnxruntime."""
    scored = set(forest.targets.tolist())
    most = {(0,): 2, (1,): 1}.get(tuple(scored), 0)
    if base.size > most:
        node.refuse("CC0202", f"onnxruntime does not define {base.size} base values with weights of classes {scored}")
    if len(scored) == 1:
        return "margin" if (forest.weights < 0).any() else "probability"
    if labels.dtype != object and labels.tolist() != [0, 1]:
        message = f"onnxruntime answers 0 or 1 where the class labels are {labels.tolist()} and both have weights"
        node.refuse("CC0202", message)
    return "positive"


def _constants(node: Node, build: PlanBuilder, forest: Forest, targets: int, base: Array) -> list[Value]:
    """The constants of the op."""
    if forest.targets.size and not (forest.targets.min() >= 0 and forest.targets.max() < targets):
        node.refuse("CC0202", f"{node.op_type} has weights for a target outside of 0 to {targets - 1}")
    if forest.feature.size and not (forest.feature.min() >= 0 and forest.feature.max() < 2**30):
        node.refuse("CC0202", f"{node.op_type} tests a feature with an index that no input has")
    return [build.constant(array) for array in (*forest.packed(node, targets), base)]


def _floats(node: Node, name: str, kind: str) -> Array:
    """The numbers of the attribute `name`, or of the tensor `name_as_tensor`, in the dtype to compute in."""
    numbers = node.floats(name, None) or []
    tensor = node.tensor(f"{name}_as_tensor", None) if node.version >= 3 else None
    if tensor is None:
        return np.array(numbers, np.float32).astype(dtypes.numpy_dtype(kind))
    if numbers or tensor.dtype != dtypes.numpy_dtype(kind):
        node.refuse("CC0202", f"{node.op_type} needs either {name} or {name}_as_tensor of {kind}")
    return tensor.reshape(-1)


def _integers(node: Node, name: str) -> Array:
    return np.array(node.ints(name, None) or [], np.int64)


def _equally_long(node: Node, columns: dict[str, Array]) -> None:
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        node.refuse("CC0202", f"{node.op_type} needs lists of one length, found {lengths}")


def _forest(node: Node, kind: str, of: str) -> Forest:
    """The trees of the first versions, whose nodes have an identity: the numbers of the tree and of the node."""
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    columns = {name: _integers(node, name) for name in names}
    mode = np.array([MODES.get(name, -1) for name in node.strings("nodes_modes", None) or []], np.int64)
    columns |= {"nodes_modes": mode, "nodes_values": _floats(node, "nodes_values", kind)}
    _equally_long(node, columns)
    _floats(node, "nodes_hitrates", kind)  # have no effect
    if not mode.size or (mode < 0).any():
        node.refuse("CC0202", f"{node.op_type} has no nodes, or nodes of an unknown mode")
    trees, inner = columns["nodes_treeids"], mode != LEAF
    begins = np.flatnonzero(np.append(True, trees[1:] != trees[:-1]))
    if len(np.unique(trees[begins])) < len(begins):
        node.refuse("CC0202", f"the nodes of a tree of {node.op_type} are not adjacent")
    weights = {f"{of}_weights": _floats(node, f"{of}_weights", kind)}
    weights |= {f"{of}_{name}": _integers(node, f"{of}_{name}") for name in ("ids", "treeids", "nodeids")}
    _equally_long(node, weights)
    find = _finder(node, trees, columns["nodes_nodeids"])
    children = np.zeros((2, len(mode)), np.int64)
    for row, name in enumerate(("nodes_truenodeids", "nodes_falsenodeids")):
        children[row][inner] = find(trees[inner], columns[name][inner], name)
    return Forest(
        feature=np.where(inner, columns["nodes_featureids"], 0),
        mode=mode,
        split=columns["nodes_values"],
        missing=_missing(node, len(mode)),
        yes=children[0],
        no=children[1],
        roots=begins,
        leaves=find(weights[f"{of}_treeids"], weights[f"{of}_nodeids"], f"{of}_nodeids"),
        targets=weights[f"{of}_ids"],
        weights=weights[f"{of}_weights"],
        members={},
    )


def _missing(node: Node, nodes: int) -> Array:
    """Whether a NaN passes the test of each node. The list may be shorter, as in onnxruntime."""
    tracks = _integers(node, "nodes_missing_value_tracks_true")[:nodes] == 1
    return np.pad(tracks, (0, nodes - len(tracks)))


def _finder(node: Node, trees: Array, numbers: Array) -> Any:
    """A function that returns the places of nodes, given the numbers of their trees and of the nodes."""
    every_tree, tree = np.unique(trees, return_inverse=True)
    every_number, number = np.unique(numbers, return_inverse=True)
    keys = tree * len(every_number) + number
    order = np.argsort(keys)
    known = keys[order]
    if (known[1:] == known[:-1]).any():
        node.refuse("CC0202", f"two nodes of {node.op_type} have the same numbers of tree and node")

    def find(trees: Array, numbers: Array, name: str) -> Array:
        tree, has_tree = _searched(every_tree, trees)
        number, has_number = _searched(every_number, numbers)
        place, has_key = _searched(known, tree * len(every_number) + number)
        is_wrong = ~(has_tree & has_number & has_key)
        if is_wrong.any():
            first = is_wrong.argmax()
            message = f"no node {numbers[first]} in tree {trees[first]}, to which {name} leads"
            node.refuse("CC0202", f"{node.op_type} has {message}")
        found: Array = order[place]
        return found

    return find


def _searched(known: Array, wanted: Array) -> tuple[Array, Array]:
    """The place of each wanted number among the known ones, which are sorted, and whether it is there."""
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return place, known[place] == wanted


def _newest_forest(node: Node, given: str, kind: str) -> Forest:
    """The trees of version 5, whose leaves are apart from the nodes. Each branch to a leaf gets its own leaf."""
    names = ("nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs")
    columns = {name: _integers(node, name) for name in names}
    modes = node.tensor("nodes_modes")
    if modes.dtype != np.uint8:
        node.refuse("CC0202", f"the attribute nodes_modes of TreeEnsemble is of {modes.dtype}, not of uint8")
    mode = modes.reshape(-1).astype(np.int64)
    columns |= {"nodes_modes": mode, "nodes_splits": _tensor(node, "nodes_splits", given, kind)}
    _equally_long(node, columns)
    targets = {"leaf_targetids": _integers(node, "leaf_targetids")}
    targets["leaf_weights"] = _tensor(node, "leaf_weights", given, kind)
    _equally_long(node, targets)
    node.tensor("nodes_hitrates", None)  # has no effect
    roots, count = _integers(node, "tree_roots"), len(mode)
    if not roots.size or ((mode < 0) | (mode > MEMBER)).any():
        node.refuse("CC0202", "TreeEnsemble has no trees, or nodes of an unknown mode")
    branches = np.concatenate([columns["nodes_truenodeids"], columns["nodes_falsenodeids"]])
    is_leaf = np.concatenate([columns["nodes_trueleafs"], columns["nodes_falseleafs"]]) != 0
    limit = np.where(is_leaf, len(targets["leaf_weights"]), count)
    for name, indices, most in (("tree_roots", roots, count), ("branches", branches, limit)):
        if ((indices < 0) | (indices >= most)).any():
            node.refuse("CC0202", f"the {name} of TreeEnsemble lead to nodes or leaves that do not exist")
    leaves = branches[is_leaf]
    branches = branches.copy()
    branches[is_leaf] = count + np.arange(len(leaves))
    rest = len(leaves)
    return Forest(
        feature=np.pad(columns["nodes_featureids"], (0, rest)),
        mode=np.pad(mode, (0, rest), constant_values=LEAF),
        split=np.pad(columns["nodes_splits"], (0, rest)),
        missing=np.pad(_missing(node, count), (0, rest)),
        yes=np.pad(branches[:count], (0, rest)),
        no=np.pad(branches[count:], (0, rest)),
        roots=roots,
        leaves=count + np.arange(rest),
        targets=targets["leaf_targetids"][leaves],
        weights=targets["leaf_weights"][leaves],
        members=_members(node, mode, given, kind),
    )


def _tensor(node: Node, name: str, given: str, kind: str) -> Array:
    """A tensor attribute of the input's dtype, in the dtype to compute in."""
    tensor = node.tensor(name)
    if tensor.dtype != dtypes.numpy_dtype(given):
        node.refuse("CC0202", f"the attribute {name} of TreeEnsemble is of {tensor.dtype}, and the input of {given}")
    return tensor.reshape(-1).astype(dtypes.numpy_dtype(kind))


def _members(node: Node, mode: Array, given: str, kind: str) -> dict[int, Array]:
    """The set of each node with the mode `MEMBER`; a NaN separates two sets."""
    places = np.flatnonzero(mode == MEMBER)
    values = np.zeros(0) if node.tensor("membership_values", None) is None else None
    values = _tensor(node, "membership_values", given, kind) if values is None else values
    sets = np.split(values, np.flatnonzero(np.isnan(values)))
    sets = [part[~np.isnan(part)] for part in sets]
    if values.size and np.isnan(values[-1]):
        sets.pop()
    sets = sets if values.size else []
    if len(sets) != len(places) or any(not part.size for part in sets):
        node.refuse("CC0202", f"TreeEnsemble has {len(places)} nodes that test for members, and {len(sets)} sets")
    return {int(place): part for place, part in zip(places, sets, strict=True)}
