"""Faults on purpose: each turns the check of a folder red, and the output says what changed and what to type next."""

from __future__ import annotations

import json
import re
import shlex
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
RECORD = "candlec zoo update --zoo . --facts zoo.facts.toml --only soft"
BISECT = "candlec bisect soft.onnx --input soft.npz"


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a model, and the facts that hold before something breaks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    monkeypatch.setenv("COLUMNS", "150")
    made = onnx.parser.parse_model(MODEL)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.linspace(1, 2, 64, dtype=np.float32), "shift"))
    onnx.save(made, "soft.onnx")
    np.savez("soft.npz", x=4 * np.random.default_rng(0).standard_normal((2, 64), np.float32))
    Path("INDEX.json").write_text(json.dumps([{"name": "soft", "file": "soft.onnx", "cases": ["soft.npz"]}]))
    assert run("zoo", "update", "--zoo", ".", "--facts", "zoo.facts.toml") == 0


FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a wrong kernel": (broken_checks.wrong_kernel, "status: equal → different", BISECT),
    "a wrong pass": (broken_checks.wrong_pass, "status: equal → different", BISECT),
    "a rule that fires no more": (
        broken_checks.silent_rule,
        r"rewrites\.recognize_softmax: \w+ 1 → (0|none)|rewrites\.recognize_softmax: .* → none",
        RECORD,
    ),
    "a slower plan": (broken_checks.slow_pass, r"steps: .* → ", RECORD),
    "twice the memory": (broken_checks.large_allocation, r"scalar\.peak_bytes: [\d,]+ → [\d,]+", RECORD),
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


def test_a_fault_that_changes_no_result_is_named_by_the_facts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bisect` compares results, so it finds nothing. The facts name the pass, the rule and the steps."""
    monkeypatch.setattr(tasks, "check", broken_checks.silent_rule)
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    assert "rewrites.recognize_softmax" in printed and "soft, pinned: steps: " in printed
    assert run(*shlex.split(BISECT)[1:]) == 0
