"""Arguments of the Python interface: an error names the wrong argument and states the expected one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler import CompileError, DeviceError, InputError, Options, Plan, PlanError

MODEL = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 20]> m (float[n, 2] x, string[1] s) => (float[n, 2] y, string[1] t) '
    "{ y = Neg (x)  t = Identity (s) }"
)
PLAN = compiler.compile(MODEL)
SESSION = compiler.load(PLAN, threads=1)
X, S = np.ones((1, 2), np.float32), np.array(["a"], object)


def run(x: Any = X, s: Any = S) -> None:
    SESSION.run({"x": x, "s": s})


def verify(**arguments: Any) -> None:
    compiler.verify(MODEL, PLAN, **{"inputs": {"x": X, "s": S}, **arguments})


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a graph": (
        lambda: compiler.compile(MODEL.graph),
        TypeError,
        "a model must be a path, bytes, onnx.ModelProto, .* or torch.export.ExportedProgram, not GraphProto",
    ),
    "an empty path": (lambda: compiler.compile(""), CompileError, "the path of the model is empty"),
    "options as a dict": (
        lambda: compiler.compile(MODEL, {}),
        TypeError,
        r"options are compiler\.Options.*, not dict",
    ),
    "bytes as a plan": (
        lambda: compiler.load(PLAN.data),
        TypeError,
        r"plan: expected a compiler\.Plan or the path .* bytes",
    ),
    "no plan": (lambda: compiler.load(None), TypeError, r"plan: expected a compiler\.Plan or the path"),
    "text as a plan's bytes": (lambda: Plan("x"), TypeError, "data: expected the bytes of a plan file, found str"),
    "bytes that are no plan": (lambda: Plan(b"abc").inputs, PlanError, "cannot read the plan"),
    "a number as a path": (lambda: Plan.load(0), TypeError, "path: expected the path of a plan file, found int"),
    "no path": (lambda: Plan.load(""), FileNotFoundError, "No such file"),
    "nowhere to save": (lambda: PLAN.save(None), TypeError, "path: expected the path of a file, found NoneType"),
    "a device": (lambda: compiler.load(PLAN, "tpu"), DeviceError, 'device "tpu": unknown'),
    "no threads": (
        lambda: compiler.load(PLAN, threads=0),
        ValueError,
        "threads: expected a whole number from 1 to 1024",
    ),
    "half a thread": (lambda: compiler.load(PLAN, threads=0.5), TypeError, "threads: expected .* found 0.5"),
    "threads as text": (lambda: compiler.load(PLAN, threads="2"), TypeError, "threads: expected .* found '2'"),
    "inputs as a list": (lambda: SESSION.run([X]), TypeError, "inputs: expected a dict of arrays by name, found list"),
    "inputs as an array": (
        lambda: SESSION.run(X),
        TypeError,
        "inputs: expected a dict of arrays by name, found ndarray",
    ),
    "no inputs": (lambda: SESSION.run(None), TypeError, "inputs: expected a dict of arrays by name, found NoneType"),
    "inputs by number": (lambda: SESSION.run({0: X}), TypeError, "inputs: expected a dict .* found the key 0"),
    "one input": (lambda: SESSION.run({"s": S}), InputError, r"input 'x' is missing: expected float32 \[n, 2\]"),
    "floats as text": (
        lambda: run(s=np.array([1.5], object)),
        InputError,
        r"'s': expected string \[1\], .* one is float",
    ),
    "bytes as text": (lambda: run(s=np.array([b"a"])), InputError, r"'s': expected string \[1\], .* one is bytes"),
    "complex numbers": (
        lambda: run(np.zeros((1, 2), complex)),
        InputError,
        r"'x': expected float32 \[n, 2\], .* complex128",
    ),
    "records": (lambda: run(np.zeros(2, [("a", "i4")])), InputError, r"'x': expected float32 \[n, 2\], .* void32"),
    "no runs": (lambda: SESSION.profile({"x": X, "s": S}, 0), ValueError, "runs: expected a whole number from 1"),
    "a file of inputs": (
        lambda: verify(inputs="io.npz"),
        TypeError,
        "inputs: expected a dict of arrays by name, found str",
    ),
    "another seed": (
        lambda: verify(inputs=None, seed=-3),
        ValueError,
        "seed: expected a whole number from 0, found -3",
    ),
    "another tolerance": (
        lambda: verify(tolerance=float("nan")),
        ValueError,
        "tolerance: expected a number from 0, found nan",
    ),
    "tolerance as text": (lambda: verify(tolerance="1"), TypeError, "tolerance: expected a number from 0, found str"),
    "another size": (lambda: verify(inputs=None, dims={"n": -1}), ValueError, r"dims\['n'\]: expected a whole number"),
    "a number as plan": (lambda: compiler.verify(MODEL, 3), TypeError, r"plan: expected a compiler\.Plan or the path"),
    "no model": (
        lambda: compiler.verify(None, PLAN, {"x": X, "s": S}),
        TypeError,
        "model: expected a path, bytes or an onnx",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_is_named(name: str) -> None:
    call, kind, said = CASES[name]
    with pytest.raises(kind, match=said):
        call()


def test_numbers_of_numpy_are_whole_numbers_too() -> None:
    plan = compiler.compile(MODEL, Options(dims={"n": np.int64(3)}, max_memory=np.int32(10**6)))
    assert plan.inputs[0].shape == (3, 2)
    assert compiler.load(plan, threads=np.int8(1)).threads == 1


def test_every_error_has_the_same_base() -> None:
    from compiler.accuracy.reference import ReferenceFailed, ReferenceMissing
    from compiler.frontend.export_request import ExportError

    errors = (CompileError, PlanError, InputError, compiler.RunError, DeviceError)
    assert all(issubclass(each, compiler.Error) for each in (*errors, ExportError, ReferenceFailed, ReferenceMissing))


def test_plans_and_sessions_have_a_short_text(tmp_path: Path) -> None:
    shown = "x: float32 [n, 2], s: string [1] → y: float32 [n, 2], t: string [1]"
    assert repr(SESSION) == f"Session({shown}; cpu, 1 thread)"
    assert repr(PLAN) == f"Plan(2 steps, {len(PLAN.data)} bytes)"
    assert repr(Plan(b"abc")) == "Plan(invalid, 3 bytes)"
