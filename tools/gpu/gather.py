"""The models of the bundle: plans with inputs and the CPU's results."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper

import compiler
from compiler.accuracy.compare import TOLERANCES, compare
from compiler.accuracy.reference import Reference
from compiler.bench.expectation import expected_steps
from compiler.zoo.index import read_index
from gpu import cooperative, drawn
from gpu.agreement import sampled
from gpu.files import Model
from gpu.graphs import paths, small
from gpu.operators import TOGETHER
from gpu.shapes import SHAPES, Shape
from gpu.timing import in_turns
from tests.contrib.test_schema import CASES
from tests.onnx_backend.cases import RANDOM, data_sets, load_cases
from tests.trained.zoo import allowed

__all__ = ["kernels", "of_convolutions", "of_networks", "of_operators", "of_trained", "paths", "sanitized", "small"]

Array = np.ndarray[Any, Any]
KERNELS = Path(compiler.__file__).parents[1] / "runtime/device/kernels"
BATCHES = (1, 32)
LARGE = 5e-4
"""The least seconds on the CPU of a model that is too large for the emulator."""
LONGEST = 1 << 20
"""The largest inputs of a test of an operator, in bytes."""
WORTH = 4.0
"""The allowed difference of a random network's output, in multiples of the effect of one unit in the last place of each
weight."""


def with_results(model: Model) -> Model:
    """A model with the CPU's results for its cases."""
    session = compiler.load(compiler.Plan(model["plan"]))
    return {**model, "expected": [sampled(session.run(case)) for case in model["cases"]]}


def of_trained(folders: Iterable[Path]) -> Iterator[Model]:
    """The models of folders, with onnxruntime's results, and the tolerance for the CPU's."""
    for entry in (entry for folder in folders for entry in read_index(folder)):
        plan, reference = compiler.compile(entry.path), Reference(entry.path)
        cases = [entry.inputs(case) for case in entry.cases]
        made = with_results(
            {
                "name": entry.name,
                "plan": plan.data,
                "cases": cases,
                "tolerance": entry.tolerance,
                "reference": [sampled(reference.run(case)) for case in cases],
                "allowed": allowed(entry.name),
            }
        )
        yield {**made, "is_large": seconds(made) > LARGE}


def seconds(model: Model) -> float:
    """Seconds of a run on the CPU, with one thread."""
    session = compiler.load(compiler.Plan(model["plan"]), threads=1)
    return in_turns({"run": partial(session.run, model["cases"][0])}, 0.1)["run"]["median"] / 1e3


def of_operators() -> Iterator[Model]:
    """The tests of operators that compile and whose results are not random, in groups."""
    tests: list[Model] = []
    number = 0
    for name, model, inputs in tested():
        try:
            plan = compiler.compile(model)
        except compiler.CompileError:
            continue  # tests/onnx_backend/failing.toml gives the reason
        names = [info.name for info in compiler.load(plan, threads=1).inputs]
        cases = [dict(zip(names, each, strict=True)) for each in inputs]
        if sum(getattr(value, "nbytes", 0) for case in cases for value in case.values()) > LONGEST:
            continue
        tests.append(with_results({"name": name, "plan": plan.data, "cases": cases, "tolerance": None}))
        if len(tests) == TOGETHER:
            yield {"name": f"{number:03}", "tests": tests}
            tests, number = [], number + 1
    if tests:
        yield {"name": f"{number:03}", "tests": tests}


def tested() -> Iterator[tuple[str, onnx.ModelProto, list[list[Array]]]]:
    """The names, models and inputs of the onnx package's tests, and of the tests of onnxruntime's own operators."""
    for name, case in sorted(load_cases().items()):
        model = case.model if case.model is not None else onnx.load(Path(case.model_dir or "") / "model.onnx")
        if not any(node.op_type in RANDOM for node in model.graph.node):
            yield name, model, [inputs for inputs, _ in data_sets(case, model)]
    for number, each in enumerate(CASES):
        yield f"{each.op_type} {number}", each.model(), [list(each.feeds.values())]


def of_networks(folder: Path, names: Iterable[str] = ()) -> Iterator[Model]:
    """Networks whose weights are generated on the machine that runs them; without names, all networks."""
    from gpu import architectures

    for name in names or architectures.NETWORKS:
        for batch in BATCHES:
            given = architectures.inputs(name, batch)
            plan = compiler.compile(exported(name, batch, folder))
            made = {"name": f"{name}-b{batch}", "module": "gpu.architectures", "network": name, "is_large": True}
            blank = drawn.blanked(plan.data)
            found = {**made, **blank, "inputs": renamed(given, plan)}
            print(f"  {found['name']}", flush=True)
            yield found | expected(found)


def renamed(given: list[drawn.Drawn], plan: compiler.Plan) -> list[drawn.Drawn]:
    """The inputs, with the plan's names."""
    names = [info.name for info in compiler.load(plan, threads=1).inputs]
    return [(name, shape, bound) for name, (_, shape, bound) in zip(names, given, strict=True)]


def expected(model: Model) -> Model:
    """The CPU's results of a network, and the tolerance for a device's.

    The weights are random, so there is no other reference. The tolerance is `WORTH` times the change of a result when
    every weight changes by one unit in the last place, and at least the tolerance of the type.
    """
    case = drawn.inputs(model["inputs"])
    runs = [compiler.load(compiler.Plan(data)).run(case) for data in (drawn.filled(model), drawn.nudged(model))]
    first, second = map(sampled, runs)
    moved = compare(first, second, TOLERANCES["float32"])
    return {"expected": [first], "tolerance": TOLERANCES["float32"] * max(1.0, WORTH * moved.worst)}


def exported(name: str, batch: int, folder: Path) -> Path:
    """The ONNX file of a network, which is exported once for each content of the source file."""
    import torch

    from gpu import architectures

    folder.mkdir(parents=True, exist_ok=True)
    state = Path(architectures.__file__).read_bytes() + importlib.metadata.version("torch").encode()
    path = folder / f"{name}-b{batch}-{hashlib.sha256(state).hexdigest()[:8]}.onnx"
    if not path.exists():
        print(f"  exporting {name}, batch {batch}", flush=True)
        for former in folder.glob(f"{name}-b{batch}-*"):
            former.unlink()
        given = tuple(torch.from_numpy(each) for each in drawn.inputs(architectures.inputs(name, batch)).values())
        with torch.no_grad():
            part = compiler.export(architectures.build(name), given, path.with_suffix(".part"), check=False)
        part.rename(path)
    return path


def of_convolutions(shapes: Iterable[Shape] = SHAPES) -> Iterator[Model]:
    """A convolution for each shape, with its weights as an input; `forms`: estimates by form; and the `chosen` form."""
    for shape in shapes:
        plan = compiler.compile(convolution(shape))
        given = {"x": np.zeros(shape.input, np.float32), "w": np.zeros(shape.weights, np.float32)}
        (step,) = [step for step in expected_steps(plan, given) if step.op.startswith("Conv")]
        (chosen,) = [each.form for each in step.alternatives if each.chosen]
        forms = {each.form: each.microseconds for each in step.alternatives}
        yield {"name": shape.name, "plan": plan.data, "forms": forms, "chosen": chosen}


def convolution(shape: Shape) -> onnx.ModelProto:
    """The model of a convolution."""
    node = onnx.helper.make_node(
        "ConvTranspose" if shape.is_transposed else "Conv", ["x", "w"], ["y"], **shape.attributes
    )
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each)
        for name, each in (("x", shape.input), ("w", shape.weights))
    ]
    graph = onnx.helper.make_graph([node], "g", infos, [onnx.helper.make_empty_tensor_value_info("y")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


def sanitized() -> Iterator[Model]:
    """Groups of small plans for compute-sanitizer, with the CPU's results."""
    for group in cooperative.groups():
        yield {**group, "group": [with_results(each) for each in group["group"]]}


def kernels() -> dict[str, bool]:
    """Every kernel as `module/name`, and whether its threads share memory, from the emulator's headers."""
    return {name: waits for file in sorted(KERNELS.glob("*.cu")) for name, waits in kernels_of(file)}


def kernels_of(file: Path) -> Iterator[tuple[str, bool]]:
    """The kernels of a module, from the output of the preprocessor."""
    source = f'#define MODULE "{file.stem}"\n#include "device.cuh"\n#include "{file.name}"\n'
    command = ["g++", "-E", "-P", "-x", "c++", "-std=c++17", "-I", str(KERNELS), "-"]
    text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    for name, waits in re.findall(r'"/" "(\w+)",\s*sizeof\(\w+\),\s*\w+,\s*(true|false)', text):
        yield f"{file.stem}/{name}", waits == "true"
