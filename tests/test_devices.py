"""Devices: the choice of a device, and the messages on missing devices and on steps that a device cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import DeviceError, Plan, _runtime
from compiler.cli import main
from compiler.runtime.steps import PlacedStep

NEG = '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Neg(x) }'


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compiler.compile(onnx.parser.parse_model(NEG))


def test_devices(plan: Plan) -> None:
    assert compiler.load(plan, device="auto").device in ("cpu", "cuda")
    with pytest.raises(DeviceError, match='"tpu": unknown; devices are cpu, cuda '):
        compiler.load(plan, device="tpu")


def test_a_cuda_module_that_is_not_there(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "compiler._runtime_cuda", raising=False)
    monkeypatch.setattr(compiler, "__path__", [])
    session = compiler.load(plan, device="auto")
    assert session.device == "cpu"
    assert (session.fallback_reason or "").startswith('device "cuda": this build of')
    assert compiler.load(plan).fallback_reason is None
    with pytest.raises(DeviceError, match=r'"cuda": this build of .* has no module .*: build it with `make cuda`, or'):
        compiler.load(plan, device="cuda")


def test_a_cuda_module_that_does_not_load_says_why(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "compiler._runtime_cuda", raising=False)
    (tmp_path / "_runtime_cuda.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')")
    monkeypatch.setattr(compiler, "__path__", [str(tmp_path)])
    with pytest.raises(DeviceError, match=r"_runtime_cuda cannot be loaded \(libcuda\.so\.1"):
        compiler.load(plan, device="cuda")


HOSTED = [PlacedStep("Shape", "Shape(a)", "nature"), PlacedStep("Unary", "Neg(b)", "no_kernel", 2_000_000)]


class StandIn:
    """The runtime's session on the processor, as a device would report it that lacks a kernel."""

    device = "cuda"
    placed_steps = json.dumps([vars(step) for step in [PlacedStep("Add", "Add(c)"), *HOSTED]])

    def __init__(self, plan: bytes, device: str, *options: Any) -> None:
        assert device == "cuda"
        self._inner = _runtime.Session(plan, "cpu", *options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("PlanError", "DeviceError", "InputError", "RunError", "OpError")
    module = SimpleNamespace(Session=StandIn, **{name: getattr(_runtime, name) for name in names})
    monkeypatch.setitem(sys.modules, "compiler._runtime_cuda", module)  # type: ignore[arg-type]


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_session_says_what_its_device_lacks(plan: Plan, device: str) -> None:
    session = compiler.load(plan, device=device)
    assert session.device == "cuda"
    assert session.host_steps == HOSTED
    assert session.run({"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]


@pytest.mark.usefixtures("stand_in")
def test_a_strict_device_refuses_what_it_lacks(plan: Plan) -> None:
    with pytest.raises(
        DeviceError,
        match=r'"cuda": it has no kernel for Unary from Neg\(b\); without strict_device, it falls back to the CPU',
    ):
        compiler.load(plan, device="cuda", strict_device=True)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("strict", "code", "said"),
    [
        ([], 0, "cuda has no kernel for 1 step, which falls back to the CPU: 1 Unary; 2 MB move there and back"),
        (["--strict-device"], 1, "Unary"),
    ],
)
def test_the_command_names_the_steps_of_the_host(
    plan: Plan, strict: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.save(tmp_path / "neg.plan")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path / "neg.plan"), "--device", "cuda", *strict])
    assert ended.value.code == code
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


def test_the_processor_has_every_kernel(plan: Plan) -> None:
    assert compiler.load(plan, strict_device=True).host_steps == []


@pytest.mark.parametrize("level", ["AVX2", "vnni"])
def test_an_instruction_set_that_is_not_known_is_refused(plan: Plan, tmp_path: Path, level: str) -> None:
    plan.save(tmp_path / "given.plan")
    model = Path(__file__).parents[1] / "models/digits.onnx"
    run = ["run", str(tmp_path / "given.plan")]
    for verb in (run, ["compile", str(model), "--output", str(tmp_path / "made.plan")]):
        command = [sys.executable, "-m", "compiler", *verb]
        done = subprocess.run(command, env={**os.environ, "CANDLE_PLAN_ISA": level}, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith(
            f'error: device "cpu": CANDLE_PLAN_ISA is "{level}", and this processor has scalar'
        )
        assert "help" not in done.stderr
