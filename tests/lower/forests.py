"""Random ensembles of decision trees, as attributes of the operators of `ai.onnx.ml`."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

Array = np.ndarray[Any, Any]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
FEATURES = 4


def nodes_of(
    trees: int, seed: int, modes: list[str], missing: bool = True
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The attributes `nodes_…` of random trees, and the leaves: the numbers of tree and node."""
    drawn = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    leaves = []
    for tree in range(trees):
        waiting, count = [(0, 0)], 1
        for node, depth in waiting:
            if depth == 5 or (depth and drawn.random() < 0.25):
                rows.append((tree, node, 0, "LEAF", 0.0, 0, 0, 0))
                leaves.append((tree, node))
                continue
            feature, split, mode = drawn.integers(FEATURES), float(drawn.integers(-4, 5)) / 2, drawn.choice(modes)
            rows.append((tree, node, int(feature), str(mode), split, count, count + 1, int(drawn.integers(2))))
            waiting += [(count, depth + 1), (count + 1, depth + 1)]
            count += 2
    names = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]
    attributes = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=False)}
    if missing:
        attributes["nodes_missing_value_tracks_true"] = [row[-1] for row in rows]
    return attributes, leaves


def weights_of(leaves: list[tuple[int, int]], seed: int, targets: list[int], of: str, negative: bool) -> dict[str, Any]:
    """The attributes `target_…` or `class_…`: one or two weights for each leaf, or one if there is one target."""
    drawn = np.random.default_rng(seed)
    found = []
    for tree, node in leaves:
        for target in drawn.permutation(targets)[: drawn.integers(1, 3)]:
            found.append((tree, node, int(target), float(np.float32(drawn.random() - negative * 0.5))))
    columns = zip(*found, strict=True)
    return {
        f"{of}_{name}": list(column)
        for name, column in zip(["treeids", "nodeids", "ids", "weights"], columns, strict=True)
    }


def newest_of(attributes: dict[str, Any], dtype: str, members: bool) -> dict[str, Any]:
    """The same trees with one weight for each leaf as attributes of `TreeEnsemble` 5."""
    inner = [i for i, mode in enumerate(attributes["nodes_modes"]) if mode != "LEAF"]
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    place = {keys[i]: row for row, i in enumerate(inner)}
    leaf = {}
    for row, key in enumerate(zip(attributes["target_treeids"], attributes["target_nodeids"], strict=True)):
        leaf.setdefault(key, row)
    codes = np.uint8([MODES.index(attributes["nodes_modes"][i]) for i in inner])
    if members:
        codes[codes == 4] = 6
    sets = [
        [np.floor(split), np.floor(split) + 2, np.nan]
        for code, i in zip(codes, inner, strict=True)
        for split in [attributes["nodes_values"][i]]
        if code == 6
    ]
    new: dict[str, Any] = {"nodes_modes": numpy_helper.from_array(codes, "modes")}
    for side in ("true", "false"):
        branches = [(attributes["nodes_treeids"][i], attributes[f"nodes_{side}nodeids"][i]) for i in inner]
        new[f"nodes_{side}leafs"] = [int(key in leaf) for key in branches]
        new[f"nodes_{side}nodeids"] = [leaf[key] if key in leaf else place[key] for key in branches]
    for name in ("featureids", "missing_value_tracks_true"):
        new[f"nodes_{name}"] = [attributes[f"nodes_{name}"][i] for i in inner]
    tensors = {
        "nodes_splits": [attributes["nodes_values"][i] for i in inner],
        "leaf_weights": attributes["target_weights"],
        "membership_values": [number for part in sets for number in part],
    }
    for name, numbers in tensors.items():
        if numbers:
            new[name] = numpy_helper.from_array(np.array(numbers, dtype), name)
    roots = [place[key] for key in dict.fromkeys((tree, 0) for tree in attributes["nodes_treeids"])]
    return new | {"leaf_targetids": attributes["target_ids"], "tree_roots": roots}


def rows_of(count: int, seed: int, dtype: str) -> Array:
    """Rows whose elements often equal a threshold; some are NaN or infinite, if the dtype has them."""
    drawn = np.random.default_rng(seed)
    x = drawn.integers(-5, 6, (count, FEATURES)) / 2
    if np.dtype(dtype).kind == "f":
        x[drawn.random(x.shape) < 0.1] = np.nan
        x[drawn.random(x.shape) < 0.05] = -np.inf
    return x.astype(dtype)
