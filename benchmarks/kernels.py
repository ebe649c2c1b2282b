"""`python benchmarks/kernels.py --folder FOLDER`: writes the rows of suite/ as models.

`candlec bench --zoo FOLDER` times the models. Each file of suite/ has the rows of one family of operators. A row is a
model of one operator, or of a few:

- `inputs` and `weights` are types as ONNX text has them. Seeded noise fills both. The weights are constants.
- `body` is ONNX text.
- With `repeat`, the body occurs as often as this number says. `{i}` and `{next}` count the repetitions.
- A row with `trees` is the sum of this number of decision trees.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import onnx.shape_inference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUITE = Path(__file__).parent / "suite"
WEIGHT = 0.05
"""The standard deviation of weights. With larger weights, recurrent operators are chaotic."""
DEPTH = 6
"""The levels of decisions of a tree, as gradient boosting libraries choose them by default."""
HEADER = '<ir_version: 9, opset_import: ["": 20]>'


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/kernels"), show_default=True)
def main(folder: Path) -> None:
    """Write the model and inputs of every row, and the INDEX.json."""
    folder.mkdir(parents=True, exist_ok=True)
    found = rows()
    for name, row in found.items():
        generator = np.random.default_rng(0)
        onnx.save(model(row, generator), folder / f"{name}.onnx")
        np.savez(folder / f"{name}.npz", **arrays(row["inputs"], generator))
    index = [{"name": name, "file": f"{name}.onnx", "cases": [f"{name}.npz"]} for name in found]
    (folder / "INDEX.json").write_text(json.dumps(index, indent=2) + "\n")


def rows() -> dict[str, dict[str, Any]]:
    """The rows of all families, by name.

    Raises:
        ValueError: two rows have the same name.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(SUITE.glob("*.toml")):
        family = tomllib.loads(file.read_text())
        if known := found.keys() & family:
            raise ValueError(f"{file}: an earlier file has these rows too: {', '.join(sorted(known))}")
        found |= family
    return found


def model(row: dict[str, Any], generator: np.random.Generator) -> onnx.ModelProto:
    """The model of a row: its trees, or its nodes and weights with the last node's results as outputs."""
    if "trees" in row:
        return forest(row, generator)
    body = row["body"].strip()
    lines = [body.format(i=i, next=i + 1) for i in range(row["repeat"])] if "repeat" in row else body.splitlines()
    inputs = ", ".join(f"{declared} {name}" for name, declared in row["inputs"].items())
    outputs = ", ".join(f"float {name}" for name in lines[-1].partition(" = ")[0].split(", "))
    made = onnx.parser.parse_model(f"{HEADER} row ({inputs}) => ({outputs}) {{ {' '.join(lines)} }}")
    for name, array in arrays(row.get("weights", {}), generator).items():
        small = array * array.dtype.type(WEIGHT) if array.dtype.kind == "f" else array
        made.graph.initializer.append(onnx.numpy_helper.from_array(small, name))
    for output in made.graph.output:
        output.ClearField("type")  # so that inference sets it
    made = onnx.shape_inference.infer_shapes(made)
    onnx.checker.check_model(made, full_check=True)
    return made


def forest(row: dict[str, Any], generator: np.random.Generator) -> onnx.ModelProto:
    """The model of a row with a number of complete binary trees: the sum of the leaves that each row of `x` reaches."""
    [(name, declared)] = row["inputs"].items()
    decisions, nodes = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
    [features] = [int(dim) for dim in re.findall(r"\d+", declared)][1:]
    ids, is_leaf = np.tile(np.arange(nodes), row["trees"]), np.tile(np.arange(nodes) >= decisions, row["trees"])
    trees = np.repeat(np.arange(row["trees"]), nodes)
    attributes = {
        "nodes_treeids": trees,
        "nodes_nodeids": ids,
        "nodes_featureids": np.where(is_leaf, 0, generator.integers(features, size=ids.size)),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ"),
        "nodes_values": np.where(is_leaf, 0, generator.standard_normal(ids.size)),
        "nodes_truenodeids": np.where(is_leaf, 0, 2 * ids + 1),
        "nodes_falsenodeids": np.where(is_leaf, 0, 2 * ids + 2),
        "target_treeids": trees[is_leaf],
        "target_nodeids": ids[is_leaf],
        "target_ids": np.zeros(is_leaf.sum(), np.int64),
        "target_weights": generator.standard_normal(is_leaf.sum()) * WEIGHT,
    }
    given = {key: values.tolist() for key, values in attributes.items()}
    node = onnx.helper.make_node("TreeEnsembleRegressor", [name], ["y"], domain="ai.onnx.ml", n_targets=1, **given)
    text = f'<ir_version: 9, opset_import: ["": 20, "ai.onnx.ml": 3]> row ({declared} {name}) => (float y) {{ }}'
    made = onnx.parser.parse_model(text)
    made.graph.node.append(node)
    return made


def arrays(declared: dict[str, str], generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Random arrays of the declared types."""
    return {name: noise(each, generator) for name, each in declared.items()}


def noise(declared: str, generator: np.random.Generator) -> np.ndarray:
    """`"float[64, 3]"` → normally distributed floats, or integers from the whole range (int16's range for int32)."""
    dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", declared).groups()
    shape = tuple(int(dim) for dim in dims.split(","))
    if dtype.startswith("float"):
        return generator.standard_normal(shape, dtype=np.float32).astype("float32" if dtype == "float" else dtype)
    limits = np.iinfo("int16" if dtype == "int32" else dtype)
    return generator.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)


if __name__ == "__main__":
    main()
