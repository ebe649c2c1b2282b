"""The kinds of the runtime's errors: programs ask for them, and not for the words of messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import DeviceError, PlanError, RunError, _runtime
from compiler.cli.failure import Failed, report
from compiler.cli.input_options import Given
from compiler.errors import ErrorKind
from compiler.plan import Plan
from compiler.plan.plan import TensorInfo
from compiler.runtime.failures import own_error
from tests.fuzz_plan import sign
from tests.state.models import cache_plan

ROOT = Path(__file__).parent.parent
GOLDEN = (ROOT / "runtime/plan/tests/plans/v1.plan").read_bytes()


def model_of(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {graph}')


def test_the_names_are_those_of_the_runtime() -> None:
    assert list(get_args(ErrorKind)) == _runtime.error_kinds()


DAMAGES = {
    "empty": (b"", "damaged"),
    "few bytes": (GOLDEN[:7], "damaged"),
    "cut in the header": (GOLDEN[:100], "damaged"),
    "cut in a tensor": (GOLDEN[:-1], "damaged"),
    "longer": (GOLDEN + b"0", "damaged"),
    "changed": (GOLDEN[:-1] + bytes([GOLDEN[-1] ^ 1]), "damaged"),
    "another format": (b"PK\x03\x04" * 9, "not_a_plan"),
    "a long header": (b"\xff" * 8 + GOLDEN[8:], "not_a_plan"),
    "no header": (bytes(8) + b"x" * 9, "not_a_plan"),
    "other tensors": (GOLDEN.replace(b'"candle-plan"', b'"candle-plam"', 1), "not_a_plan"),
    "a model": (b"\x08\x0a" + GOLDEN, "not_a_plan"),
    "newer": (GOLDEN.replace(b'"plan_version":"1"', b'"plan_version":"9"', 1), "version"),
}


@pytest.mark.parametrize(("data", "kind"), DAMAGES.values(), ids=DAMAGES)
def test_files_that_are_no_plans(data: bytes, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.plan"
    file.write_bytes(data)
    calls: list[Callable[[], Any]] = [
        lambda: compiler.load(file),
        lambda: compiler.load(Plan(data)),
        lambda: Plan.load(file),
        lambda: Plan(data).inputs,
    ]
    for call in calls:
        with pytest.raises(PlanError) as raised:
            call()
        assert raised.value.kind == kind
    report(raised.value)
    assert ("compiles an ONNX model" in capsys.readouterr().err) == (kind not in ("damaged", "version"))


NEWER = {
    "op": ('{\\"Softmax\\":', '{\\"Inverse\\":', "it has the op Inverse, "),
    "attribute": ('{\\"Gemm\\":{', '{\\"Gemm\\":{\\"mode\\":1,', "it has the attribute mode of the op Gemm, "),
    "field": ('\\"main\\"', '\\"later\\":1,\\"main\\"', "it has the field later, "),
    "dtype": ('\\"float32\\"', '\\"float48\\"', "it has the value float48, "),
}


@pytest.mark.parametrize(("old", "new", "said"), NEWER.values(), ids=NEWER)
def test_a_plan_with_a_name_of_a_newer_compiler_says_so(old: str, new: str, said: str, tmp_path: Path) -> None:
    end = 8 + int.from_bytes(GOLDEN[:8], "little")
    header = GOLDEN[8:end].replace(old.encode(), new.encode(), 1)
    file = tmp_path / "m.plan"
    file.write_bytes(sign(len(header).to_bytes(8, "little") + header + GOLDEN[end:]) or b"")
    for load in (compiler.load, Plan.load):
        with pytest.raises(PlanError) as raised:
            load(file)
        assert raised.value.kind == "version"
        assert said in str(raised.value)
        advice = "upgrade candle-compiler, or compile the model again with the installed version"
        assert str(raised.value).endswith(f"which this runtime does not know: {advice}")


def test_a_plan_that_breaks_a_rule_is_invalid(tmp_path: Path) -> None:
    data = sign(GOLDEN.replace(b'\\"inputs\\":[0', b'\\"inputs\\":[9', 1))
    assert data not in (None, GOLDEN)
    file = tmp_path / "m.plan"
    file.write_bytes(data or b"")
    for load in (compiler.load, Plan.load):
        with pytest.raises(PlanError, match="9") as raised:
            load(file)
        assert raised.value.kind == "invalid"


def kind_of(call: Callable[[], Any]) -> str | None:
    """The kind of the error that a call of the extension raises."""
    try:
        call()
    except Exception as error:
        return getattr(error, "kind", None)
    return None


def test_every_exception_of_the_extension_has_a_kind(tmp_path: Path) -> None:
    session = _runtime.Session(GOLDEN)
    growing = compiler.load(cache_plan()).new_state()._runtime
    calls: dict[str, Callable[[], Any]] = {
        "file": lambda: _runtime.Session(str(tmp_path / "absent.plan")),
        "device": lambda: _runtime.Session(GOLDEN, "cuda"),
        "threads": lambda: _runtime.Session(GOLDEN, "cpu", 0),
        "input": lambda: session.run({"x": np.zeros((1, 3), np.float32)}),
        "timed_out": lambda: session.run({"x": np.zeros((1, 4), np.float32)}, timeout=0.0),
        "op": lambda: _runtime.infer('"Neg"', "[null]", [None], 1),
        "state": lambda: growing.truncate(9),
        "state_file": lambda: growing.load(b"{}"),
        "weights": lambda: _runtime.Session(GOLDEN, weights={"w": np.zeros(1, np.float32)}),
        "invalid": lambda: _runtime.plan_json(sign(GOLDEN.replace(b'\\"constant\\":0', b'\\"constant\\":x', 1)) or b""),
    }
    assert {kind: kind_of(call) for kind, call in calls.items()} == {kind: kind for kind in calls}


RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "op": (
        "(float[6] x, int64[k] parts) => (int64 n) { s = SplitToSequence (x, parts) n = SequenceLength (s) }",
        {"x": np.zeros(6, np.float32), "parts": np.array([4])},
    ),
    "limit": (
        "(float[2, 2, 2] x, float[3] s) => (float[a, b, c] y) { y = Resize (x, , s) }",
        {"x": np.zeros((2, 2, 2), np.float32), "s": np.full(3, 2, np.float32)},
    ),
    "memory": (
        "(float[1] x, int64[1] s) => (float[n] y) { y = Expand (x, s) }",
        {"x": np.zeros(1, np.float32), "s": np.array([1 << 50])},
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_failed_step_has_a_kind(kind: str) -> None:
    graph, inputs = RUNS[kind]
    session = compiler.load(compiler.compile(model_of(graph)))
    with pytest.raises(RunError) as raised:
        session.run(inputs)
    assert raised.value.kind == kind


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_other_sizes_are_advised_except_for_devices_and_settings(kind: ErrorKind) -> None:
    error = RunError(0, "Conv", [], "", "a message", kind=kind)
    with pytest.raises((RunError, Failed)) as raised, Given().suggest_sizes([TensorInfo("x", "float32", ("n",))]):
        raise error
    assert (raised.value is error) == (kind in ("device", "setting"))


def test_the_exceptions_of_the_package_have_the_kinds_of_the_runtime() -> None:
    found = []
    for made in (
        _runtime.PlanError(["a rule"]),
        _runtime.RunError(0, "Conv", [], "", "a message", []),
        _runtime.DeviceError("a device"),
        _runtime.OpError("an op"),
        _runtime.LimitError("a limit", "advice"),
    ):
        made.kind = "limit"
        own = own_error(_runtime, made)
        found.append((type(own), own.kind, str(own)))
    assert found == [
        (PlanError, "limit", "a rule"),
        (RunError, "limit", "step 0 Conv: a message"),
        (DeviceError, "limit", "a device"),
        (DeviceError, "limit", "an op"),
        (DeviceError, "limit", "a limit: advice"),
    ]


def test_a_damaged_state_names_its_file(tmp_path: Path) -> None:
    state, file = compiler.load(cache_plan()).new_state(), tmp_path / "s.safetensors"
    file.write_bytes(b"{}")
    with pytest.raises(ValueError, match=rf"^{file} is cut short or is no saved state$"):
        state.load(file)
