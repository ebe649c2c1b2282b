"""`python benchmarks/kernels.py FOLDER`: writes the rows of suite.toml as models, for `candlec bench --zoo FOLDER`."""

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
import onnx.numpy_helper
import onnx.parser
import onnx.shape_inference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUITE = Path(__file__).parent / "suite.toml"
WEIGHT = 0.05
"""The standard deviation of weights. With larger weights, recurrent operators are chaotic."""
HEADER = '<ir_version: 9, opset_import: ["": 20]>'


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/kernels"), show_default=True)
def main(folder: Path) -> None:
    """Write the model and inputs of every row, and the INDEX.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = tomllib.loads(SUITE.read_text())
    for name, row in rows.items():
        generator = np.random.default_rng(0)
        onnx.save(model(row, generator), folder / f"{name}.onnx")
        np.savez(folder / f"{name}.npz", **arrays(row["inputs"], generator))
    index = [{"name": name, "file": f"{name}.onnx", "cases": [f"{name}.npz"]} for name in rows]
    (folder / "INDEX.json").write_text(json.dumps(index, indent=2) + "\n")


def model(row: dict[str, Any], generator: np.random.Generator) -> onnx.ModelProto:
    """The model of a row: its nodes and weights, with the last node's results as outputs."""
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
