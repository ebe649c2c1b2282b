"""Faults on purpose: each turns the check of a folder red, and the output says what changed and what to type next."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.zoo import tasks
from tests import broken_passes
from tests.cli.command import run
from tests.zoo import broken_checks
from tests.zoo.data_sets import write_data_set

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
soft (float[2, 64] x) => (float[2, 64] y) <int64[1] last = {-1}> {
    [floor] whole = Floor (x)
    [shift] shifted = Add (whole, shift)
    [top] top = ReduceMax (shifted, last)
    [sub] low = Sub (shifted, top)
    [exp] e = Exp (low)
    [sum] s = ReduceSum (e, last)
    [div] y = Div (e, s)
}"""
CHECK = ["zoo", "run", "--zoo", ".", "--facts", "zoo.facts.toml"]
CAUSE = "candlec bisect soft.onnx --what {} --facts zoo.facts.toml"
RECORD = "candlec zoo update --zoo . --facts zoo.facts.toml --only soft"
BISECT = "candlec bisect soft.onnx --input soft.npz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and the facts that hold before something breaks."""
    folder = tmp_path_factory.mktemp("recorded")
    made = onnx.parser.parse_model(MODEL)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.linspace(1, 2, 64, dtype=np.float32), "shift"))
    onnx.save(made, folder / "soft.onnx")
    np.savez(folder / "soft.npz", x=4 * np.random.default_rng(0).standard_normal((2, 64), np.float32))
    index = [{"name": "soft", "file": "soft.onnx", "cases": ["soft.npz"]}]
    (folder / "INDEX.json").write_text(json.dumps(index))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANDLE_PLAN_ISA", "scalar")
        patch.chdir(folder)
        assert run("zoo", "update", "--zoo", ".", "--facts", "zoo.facts.toml") == 0
    return folder


@pytest.fixture(autouse=True)
def models(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with the model and its facts."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    monkeypatch.setenv("COLUMNS", "150")


FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a wrong kernel": (broken_checks.wrong_kernel, "status: equal → different", BISECT),
    "a wrong pass": (broken_checks.wrong_pass, "status: equal → different", BISECT),
    "a rule that fires no more": (
        broken_checks.silent_rule,
        r"rewrites\.recognize_softmax: \w+ 1 → (0|none)|rewrites\.recognize_softmax: .* → none",
        CAUSE.format("steps"),
    ),
    "a slower plan": (broken_checks.slow_pass, r"steps: .* → ", CAUSE.format("steps")),
    "twice the memory": (
        broken_checks.large_allocation,
        r"scalar\.peak_bytes: [\d,]+ → [\d,]+",
        CAUSE.format("memory"),
    ),
    "an abort": (broken_checks.abort, "it crashed with SIGABRT .*run: pinned", f"{BISECT} --what crash"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_turns_the_check_red(
    fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*CHECK) == 0
    capsys.readouterr()
    task, drift, command = FAULTS[fault]
    monkeypatch.setattr(tasks, "check", task)
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    assert re.search(rf"^error: soft(, pinned)?: ({drift})", printed, re.MULTILINE), printed
    assert f"`{command}`" in printed


@pytest.mark.parametrize(
    ("break_", "found"),
    [
        (broken_passes.let_add_subtract, None),
        (lambda patch: broken_passes.let_pass_change_constants(patch, "merge_reshapes"), "merge_reshapes"),
    ],
    ids=["a wrong kernel", "a wrong pass"],
)
def test_the_printed_command_finds_the_cause(
    break_: Callable[[pytest.MonkeyPatch], None],
    found: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)  # the fault is in an operator of its own
    break_(monkeypatch)
    capsys.readouterr()
    assert run(*shlex.split(BISECT)[1:], "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["pass"] and shown["pass"]["name"]) == found
    assert "Add(shift)" in shown["step"]["origin"]


@pytest.mark.parametrize("case", ["soft.npz", "test_data_set_0"])
def test_the_printed_command_fixes_the_sizes_of_the_case(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pass may be wrong only for fixed sizes: the search compiles the model as the check did."""
    made = onnx.load("soft.onnx")
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    onnx.save(made, "soft.onnx")
    x = np.load("soft.npz")["x"]
    write_data_set(Path("test_data_set_0"), [x], [])
    Path("INDEX.json").write_text(json.dumps([{"name": "soft", "file": "soft.onnx", "cases": [case]}]))
    monkeypatch.setattr(tasks, "check", broken_checks.wrong_pass)
    assert run("zoo", "run", "--zoo", ".", "--both") == 1
    command = f"candlec bisect soft.onnx --input {case} --dim rows=2"
    assert f"`{command}` finds the pass" in capsys.readouterr().err
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    assert run(*shlex.split(command)[1:], "--json") == 1
    assert json.loads(capsys.readouterr().out)["pass"]["name"] == "merge_reshapes"


@pytest.mark.parametrize(
    ("fault", "name", "step"),
    [
        (broken_checks.silent_rule, "recognize_softmax", ("Reduce", "ReduceMax(top)")),
        (broken_checks.slow_pass, "fuse_elementwise", ("Unary", "Floor(floor)")),
    ],
    ids=["a rule that fires no more", "a slower plan"],
)
def test_the_printed_command_finds_the_cause_of_other_steps(
    fault: Callable[..., Any],
    name: str,
    step: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The results stay right, so that a comparison of results finds nothing. The recorded facts name the pass."""
    monkeypatch.setattr(tasks, "check", fault)
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    [command] = re.findall(r"`(candlec bisect .*)` finds the pass and the step$", printed, re.MULTILINE)
    assert command == CAUSE.format("steps")
    assert f"`{RECORD}`" in printed.splitlines()[-1]
    monkeypatch.setattr(broken_checks, "check", lambda *_: None)
    monkeypatch.setattr(broken_checks, "_PATCH", monkeypatch)
    fault(None, None)  # breaks this process
    assert run(*shlex.split(BISECT)[1:]) == 0
    capsys.readouterr()
    assert run(*shlex.split(command)[1:], "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["pass"]["name"] == name
    assert (shown["step"]["op"], shown["step"]["origin"]) == step
