"""The costs of weights with fewer bits: the size and error of trained models, and the time of products.

    python benchmarks/quantized_weights.py ZOO

prints two tables in Markdown. The first has the size of the plan with `int8` and the relative error of its outputs, for
each model of a folder with INDEX.json. The second one has times of products with 2048 × 2048 weights: with `int8` and
`int4`, divided by that with `float32`, with one thread. The runs take turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

import compiler
from compiler.zoo.index import read_index

LAYERS, SIZE, TURNS = 8, 2048, 12


def main() -> None:
    """Print both tables."""
    print("| model | plan, MB | with int8 ÷ without | relative error |\n| --- | ---: | ---: | ---: |")
    for entry in read_index(Path(sys.argv[1])):
        plans = [compiler.compile(entry.path, compiler.Options(weights=weights)) for weights in (None, "int8")]
        wanted, found = (compiler.load(plan).run(entry.inputs(entry.cases[0])) for plan in plans)
        error = max((distance(found[name], wanted[name]) for name in wanted if is_float(wanted[name])), default=0.0)
        sizes = [len(plan.data) for plan in plans]
        print(f"| {entry.name} | {sizes[0] / 1e6:.2f} | {sizes[1] / sizes[0]:.2f} | {error:.3f} |", flush=True)
    print("\n| rows | float32, ms | int8 ÷ float32 | int4 ÷ float32 |\n| ---: | ---: | ---: | ---: |")
    model = products()
    sessions = [
        compiler.load(compiler.compile(model, compiler.Options(weights=weights)), threads=1)
        for weights in (None, "int8", "int4")
    ]
    for rows in (1, 4, 8, 32, 128):
        x = {"x": np.random.default_rng(rows).standard_normal((rows, SIZE), np.float32)}
        first, *others = times(sessions, x)
        print(
            f"| {rows} | {first * 1e3:.2f} | " + " | ".join(f"{each / first:.2f}" for each in others) + " |", flush=True
        )


def is_float(value: Any) -> bool:
    """Whether a value is an array of floats that is not empty."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0


def distance(found: Any, wanted: Any) -> float:
    """`‖found − wanted‖ / ‖wanted‖`."""
    wide = wanted.astype(np.float64)
    return float(np.linalg.norm(found.astype(np.float64) - wide) / max(np.linalg.norm(wide), 1e-30))


def products() -> onnx.ModelProto:
    """`LAYERS` products, one after the other, with random weights."""
    nodes = "".join(f"h{i + 1} = MatMul(h{i}, w{i}) " for i in range(LAYERS))
    text = f"(float[n, {SIZE}] x) => (float[n, {SIZE}] y) {{ h0 = Identity(x) {nodes} y = Identity(h{LAYERS}) }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> products {text}')
    generator = np.random.default_rng(0)
    for i in range(LAYERS):
        weights = generator.standard_normal((SIZE, SIZE), np.float32) / np.float32(SIZE**0.5)
        model.graph.initializer.append(numpy_helper.from_array(weights, f"w{i}"))
    return model


def times(sessions: list[compiler.Session], inputs: dict[str, Any]) -> list[float]:
    """The median seconds of a run of each session; the sessions take turns."""
    taken: list[list[float]] = [[] for _ in sessions]
    for _ in range(TURNS):
        for session, seconds in zip(sessions, taken, strict=True):
            start = time.perf_counter()
            session.run(inputs)
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds[2:]) for seconds in taken]


if __name__ == "__main__":
    main()
