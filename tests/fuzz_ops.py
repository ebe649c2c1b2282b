"""Changes plans at random and runs them, in a separate process, because a crash ends it.

`python -m tests.fuzz_ops SEED CASES`: the plans come from three sources: `MODELS` random node tests of onnx, models
with fusions, and `MADE` models each for 8-bit codes and for images. A case changes one plan in one to three places: an
attribute, a whole op (both from the plan's schema, with extreme numbers), a type, the inputs of a step, the sizes or
elements of an array, or the choice between a constant and an input. `max_memory` bounds every run. The process ends if
it needs much more memory, or if a case takes longer than `SECONDS`. `--only CASE` runs a single case and prints its
plan.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

import compiler
from compiler import _runtime
from compiler.accuracy.random_inputs import random_inputs
from compiler.ir import dtypes
from tests.fuzz_bases import on_codes, on_images
from tests.fuzz_changes import CHANGES, Case
from tests.fuzz_schema import Chance, Json
from tests.onnx_backend.cases import data_sets, load_cases

EXPECTED = (compiler.PlanError, compiler.RunError, compiler.InputError, compiler.DeviceError)
MODELS, MADE = 200, 40
GOLDEN = sorted((Path(__file__).parent / "golden/models").glob("*.onnxtxt"))
MAX_MEMORY = 16 << 20
MORE_MEMORY = 512 << 20
SECONDS = 300
MOST_TURNS = 100


def with_types(chance: Chance, case: Case) -> Case:
    """Declares the types of arrays, known or not, and the types that follow, up to the first step that rejects them."""
    known = chance.choice(["sizes", "rank", "nothing"])
    values = case.main["values"]
    for id in case.main["inputs"]:
        array = case.inputs.get(values[id]["name"])
        if isinstance(array, np.ndarray):
            shape = {"sizes": list(array.shape), "rank": [None] * array.ndim, "nothing": None}[known]
            values[id]["type"] = {"Tensor": {"dtype": dtypes.name_of(array), "shape": shape}}
    for index, array in enumerate(case.constants):
        case.plan["constants"][index:] = [_constant(array)]
    for entry in case.main["constants"]:
        array = case.constants[entry["constant"]]
        values[entry["value"]]["type"] = {"Tensor": {"dtype": dtypes.name_of(array), "shape": list(array.shape)}}
    for step in case.main["steps"]:
        _declare(step, values)
    return case


def _constant(array: Any) -> Json:
    if array.dtype == object:
        return {"Strings": {"data": array.ravel().tolist(), "shape": list(array.shape)}}
    return {"Tensor": {"dtype": dtypes.name_of(array), "shape": list(array.shape)}}


def _declare(step: Json, values: list[Json]) -> None:
    inputs = [None if id is None else values[id]["type"] for id in step["inputs"]]
    try:
        kinds = json.loads(
            _runtime.infer(json.dumps(step["op"]), json.dumps(inputs), [None] * len(inputs), len(step["outputs"]))
        )
    except _runtime.OpError:
        return
    for id, kind in zip(step["outputs"], kinds, strict=False):
        if id is not None:
            values[id]["type"] = kind


def run(case: Case, threads: int) -> str:
    """The outcome: "refused", "failed" or "ran". A wrong outcome raises an exception.

    A plan that ran runs again with another number of threads, and with every value as an output, so that no step
    overwrites a value. More outputs may change the layouts of images, and therefore the rounding.
    """
    try:
        plan = compiler.Plan(case.data())
        session = compiler.load(plan, threads=threads)
    except EXPECTED:
        return "refused"
    try:
        outputs = session.run(case.inputs)
    except EXPECTED:
        return "failed"
    other = compiler.load(plan, threads=3 - threads).run(case.inputs)
    for name, output in outputs.items():
        assert bits(output) == bits(other[name]), f"{name} depends on the number of threads"
    every = compiler.load(compiler.Plan(showing_all(case).data()), threads=threads)
    shown = every.run(case.inputs)
    for info in every.outputs:
        if info.kind == "tensor":
            _check(info, shown[info.name])
    for id, output in zip(case.main["outputs"], outputs.values(), strict=True):
        if f"value {id}" in shown and bits(output) != bits(shown[f"value {id}"]):  # all but inputs
            moved = any("Reorder" in _ops(each, case.inputs) for each in (session, every))
            assert moved, f"output {id} depends on what else is an output"
    return "ran"


def _ops(session: compiler.Session, inputs: dict[str, Any]) -> set[str]:
    return {step.op for step in session.profile(inputs, 1)}


def showing_all(case: Case) -> Case:
    """The plan with all values as outputs, a name each."""
    plan = copy.deepcopy(case.plan) | {"max_memory": None}
    main = plan["main"]
    defined = {id for step in main["steps"] for id in step["outputs"] if id is not None}
    for id, value in enumerate(main["values"]):
        value["name"] = value["name"] if id in main["inputs"] else f"value {id}"
    main["outputs"] = sorted(defined | {entry["value"] for entry in main["constants"]})
    return Case(plan, case.constants, case.inputs)


def bits(value: Any) -> Any:
    """The bits of a value, so that NaN equals NaN."""
    if isinstance(value, list):
        return [bits(item) for item in value]
    if value is None or value.dtype.kind == "O":
        return None if value is None else (value.shape, value.tolist())
    return value.shape, value.dtype.name, value.tobytes()


def _check(info: compiler.TensorInfo, found: Any) -> None:
    """Checks that an output has the type that the plan declares."""
    assert dtypes.name_of(found) == info.dtype, f"{info} is {found.dtype}"
    if info.shape is not None:
        sizes = zip(info.shape, found.shape, strict=True)
        assert all(not isinstance(size, int) or size == other for size, other in sizes), f"{info} is {found.shape}"


def bases(chance: Chance) -> list[Case]:
    """Plans with inputs: of node tests, of models with fusions, and of random models of codes and of images."""
    every = load_cases()
    cases = []
    for name in chance.sample(sorted(name for name, case in every.items() if case.kind == "node"), MODELS):
        test = every[name]
        assert test.model is not None
        inputs, _ = next(data_sets(test, test.model))
        cases += _base(
            test.model, lambda infos, inputs=inputs: dict(zip([i.name for i in infos], inputs, strict=False))
        )
    for path in GOLDEN:
        cases += 3 * _base(onnx.parser.parse_model(path.read_text()), lambda infos: random_inputs(infos, {}))
    for model, made in [make(chance) for make in (on_codes, on_images) for _ in range(MADE)]:
        cases += _base(model, lambda _, made=made: made)
    return cases


def _base(model: onnx.ModelProto, inputs: Callable[[Sequence[compiler.TensorInfo]], dict[str, Any]]) -> list[Case]:
    """The case of a model and its inputs; empty if the compiler refuses the model."""
    try:
        plan = compiler.compile(model, compiler.Options(max_memory=MAX_MEMORY))
    except compiler.CompileError:
        return []
    constants = [_read(plan.data, str(index), kind) for index, kind in enumerate(plan.document["constants"])]
    return [Case(plan.document, constants, inputs(plan.inputs))]


def _read(data: bytes, name: str, constant: Json) -> Any:
    """A constant of a plan file."""
    if "Strings" in constant:
        return np.array(constant["Strings"]["data"], object).reshape(constant["Strings"]["shape"])
    start = 8 + int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:start])[name]["data_offsets"]
    dtype = constant["Tensor"]["dtype"]
    storage_type = dtypes.to_stored(np.zeros(0, dtypes.numpy_dtype(dtype))).dtype
    bits = np.frombuffer(data[start + begin : start + end], storage_type).reshape(constant["Tensor"]["shape"])
    return dtypes.from_stored(dtype, bits)


def changed(seed: int, number: int, bases: list[Case]) -> tuple[Case, int]:
    """The case of this number, and its number of threads."""
    chance = random.Random(f"{seed} {number}")
    case = copy.deepcopy(chance.choice(bases))
    for _ in range(chance.choice([1, 1, 2, 3])):
        chance.choice(CHANGES)(chance, case)
    if any("Loop" in step["op"] for step in case.main["steps"]):  # a loop may run for any number of iterations
        arrays = [array for array in (*case.inputs.values(), *case.constants) if isinstance(array, np.ndarray)]
        for array in arrays:
            if array.dtype.kind in "iu":
                np.minimum(array, MOST_TURNS, out=array)
    return with_types(chance, case), chance.choice([1, 2])


def limit_memory() -> None:
    """Limits the process's memory to its present memory and a fixed amount more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Every case, its number written first."""
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    only = sys.argv[3:4] == ["--only"]
    cases = bases(random.Random(seed))
    limit_memory()
    ends: Counter[str] = Counter()
    for number in [int(sys.argv[4])] if only else range(count):
        case, threads = changed(seed, number, cases)
        print(json.dumps(case.plan, indent=1) if only else number, flush=True)
        signal.alarm(SECONDS)
        ends[run(case, threads)] += 1
    print(", ".join(f"{count} {end}" for end, count in sorted(ends.items())))


if __name__ == "__main__":
    main()
