"""The kernels for GPUs, run on the CPU by the emulator: their results equal those of the CPU's kernels.

Each test runs on the emulator, and as `device="cuda"` on the stand-in for a GPU. A test of an operator or a model uses
both, because it compiles the model and runs it on the CPU once.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.accuracy.compare import compare
from compiler.runtime.steps import placed_steps
from tests.onnx_backend.cases import RANDOM, data_sets, load_cases
from tests.standin import device
from tests.trained.zoo import entries, exceeded, judge

CASES = load_cases()
ENTRIES = entries()


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> list[str]:
    """The names of both devices, or of the one that is there."""
    found = ["emulator"] if importlib.util.find_spec("compiler._runtime_emulator") is not None else []
    if device.reason() is None:
        request.getfixturevalue("standin")
        found.append("cuda")
    if not found:
        pytest.skip("neither the emulator nor the stand-in is built: `make emulator cuda`")
    return found


def sessions(plan: compiler.Plan, gpu: str) -> tuple[compiler.Session, compiler.Session]:
    """Sessions of a plan on the CPU and on a device."""
    return compiler.load(plan, threads=1), compiler.load(plan, device=gpu, threads=1)


@pytest.mark.parametrize("name", sorted(CASES))
def test_operators(name: str, gpus: list[str]) -> None:
    case = CASES[name]
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    if any(node.op_type in RANDOM for node in model.graph.node):
        pytest.skip("its results are random")
    try:
        plan = compiler.compile(model)
    except compiler.CompileError:
        pytest.skip("it is refused, as the ledger of the operators says")
    here, theirs = compiler.load(plan, threads=1), [compiler.load(plan, device=gpu, threads=1) for gpu in gpus]
    for inputs, _ in data_sets(case, model):
        given = {info.name: value for info, value in zip(here.inputs, inputs, strict=True)}
        wanted = here.run(given)
        for gpu, there in zip(gpus, theirs, strict=True):
            report = compare(wanted, there.run(given))
            assert report.equal, (gpu, report)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_models(name: str, gpus: list[str]) -> None:
    entry = ENTRIES[name]
    plan = compiler.compile(entry.path)
    missing = [step for step in placed_steps(plan) if step.host == "no_kernel"]
    assert not missing, missing
    here, theirs = compiler.load(plan, threads=1), [compiler.load(plan, device=gpu, threads=1) for gpu in gpus]
    devices = list(zip(gpus, theirs, strict=True))
    for index, case in enumerate(entry.cases):
        given = entry.inputs(case)
        wanted = here.run(given)
        # The devices take turns, because the emulated kernels are slow. Each runs at least one case.
        for gpu, there in devices if len(entry.cases) < len(devices) else [devices[index % len(devices)]]:
            found = there.run(given)
            if not compare(wanted, found, entry.tolerance).equal:
                # Both results are rounded. The device's must then be as close to onnxruntime's as the CPU's must be.
                report = judge(name).compare(given, found)
                assert not exceeded(name, "pinned", [report]), (gpu, report)


GATHER = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n, 4] table, int64[m] places) => (float[m, 4] rows) {
    doubled = Add(table, table)
    rows = Gather(doubled, places)
}"""


def test_a_value_that_a_kernel_cannot_take_fails_the_run(gpu: str) -> None:
    session = compiler.load(compiler.compile(onnx.parser.parse_model(GATHER)), device=gpu)
    given: dict[str, Any] = {"table": np.ones((3, 4), np.float32), "places": np.array([0, -1, 2])}
    assert session.run(given)["rows"].tolist() == [[2.0] * 4] * 3
    for place in (3, -4):
        with pytest.raises(
            compiler.RunError, match=rf"Gather from .*: index {place} is out of range for axis 0 of size 3"
        ):
            session.run({**given, "places": np.array([0, place])})
    assert session.run(given)["rows"].shape == (3, 4)


BRANCH = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x) => (float[n] y) {
    zero = Constant <value: tensor = float {0.0}> ()
    sum = ReduceSum <keepdims = 0> (x)
    positive = Greater(sum, zero)
    y = If (positive) <
        then_branch = then () => (float[n] a) { a = Mul(x, x) },
        else_branch = other () => (float[n] b) { b = Neg(x) }
    >
}"""


def test_values_stay_on_the_device_through_branches(gpu: str) -> None:
    plan = compiler.compile(onnx.parser.parse_model(BRANCH))
    session = compiler.load(plan, device=gpu, strict_device=True)
    assert {step.op for step in session.host_steps} == {"If"}
    assert session.run({"x": np.array([1, 2], np.float32)})["y"].tolist() == [1, 4]
    assert session.run({"x": np.array([-1, -2], np.float32)})["y"].tolist() == [1, 2]
    profile = session.profile({"x": np.array([1, 2], np.float32)}, runs=1)
    moved = [step.op for step in profile if step.op == "Transfer" and step.calls]
    assert len(moved) == 3, "the input, the condition, the output"


OPTIONAL = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, bool c) => (float[n] y) {
    o = If (c) <
        then_branch = then () => (optional(float[n]) a) {
            m = Mul(x, x)
            a = Optional(m)
        },
        else_branch = other () => (float[n] b) { b = Neg(x) }
    >
    y = OptionalGetElement(o)
}"""


@pytest.mark.parametrize(("condition", "expected"), [(True, [1, 4]), (False, [-1, -2])])
def test_what_may_be_optional_goes_through_branches_on_the_host(
    condition: bool, expected: list[float], gpu: str
) -> None:
    session = compiler.load(compiler.compile(onnx.parser.parse_model(OPTIONAL)), device=gpu)
    given = {"x": np.array([1, 2], np.float32), "c": np.array(condition)}
    assert session.run(given)["y"].tolist() == expected


def test_constants_are_brought_to_the_device_once(gpu: str) -> None:
    shared = BRANCH.replace("Mul(x, x)", "Mul(x, w)").replace("Neg(x)", "Sub(x, w)").replace("ReduceSum", "ReduceMax")
    model = onnx.parser.parse_model(shared.replace("(float[n] x)", "(float[512] x)", 1))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(512, dtype=np.float32), "w"))
    here, there = sessions(compiler.compile(model), gpu)
    assert there.prepared().constant_bytes < 2 * 512 * 4
    for sign in (1, -1):
        given = {"x": np.full(512, sign, np.float32)}
        np.testing.assert_array_equal(there.run(given)["y"], here.run(given)["y"])


INDEXED = """<ir_version: 10, opset_import: ["" : 20]>
g (bool c, float[3] x, int64[n] i) => (float[n] y, float[n] z) {
    y = Gather(x, i)
    z = If (c) <
        then_branch = then () => (float[n] a) {
            o = Constant <value: tensor = int64 {1}> ()
            j = Add(i, o)
            a = Gather(x, j)
        },
        else_branch = other () => (float[n] b) { b = Neg(y) }
    >
}"""


def test_a_fault_names_the_step_and_the_next_run_is_right(gpu: str) -> None:
    session = compiler.load(compiler.compile(onnx.parser.parse_model(INDEXED)), device=gpu)

    def run(index: int, condition: bool) -> dict[str, Any]:
        return session.run({"c": np.array(condition), "x": np.arange(3, dtype=np.float32), "i": np.array([index])})

    beyond = r"is out of range for axis 0 of size 3 \(element 0 of the indices\)$"
    with pytest.raises(compiler.RunError, match=rf"^step \d+ Gather from Gather\(y\): index 7 {beyond}"):
        run(7, False)
    inside = rf"^step \d+ Gather in block 0 of step \d+ If from Gather\(a\): index 3 {beyond}"
    with pytest.raises(compiler.RunError, match=inside):
        run(2, True)
    assert run(1, True)["z"].tolist() == [2]
