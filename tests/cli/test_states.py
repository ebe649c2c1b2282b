"""`candlec compile --state` and `candlec run --steps`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import compiler
from tests.cli.command import run
from tests.state.models import FIRST, PAIRS, assert_same, cache_model, expected, model_of, rows

DECODER = """(int64[batch, 1] ids, float[batch, after] mask, float[batch, past_n, 1] past_x)
    => (float[batch, total] y, float[batch, total, 1] present_x) {
    f = Cast <to = 1> (ids)
    g = Unsqueeze (f, last)
    present_x = Concat <axis = 1> (past_x, g)
    flat = Squeeze (present_x, last)
    y = Mul (flat, mask)
}"""
"""A model whose input grows with its cache."""


@pytest.fixture
def cache(folder: Path) -> Path:
    """A folder with a model that has a state."""
    onnx.save(cache_model(), "cache.onnx")
    np.savez("x.npz", **rows(0))
    return folder


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


@pytest.mark.parametrize("asked", [["--state", "auto"], ["--state", "present_x=past_x", "--state", "*_out=*"]])
def test_compile_shows_the_pairs(cache: Path, asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "cache.onnx", *asked) == 0
    lines = [line.split() for line in printed(capsys).splitlines()]
    assert ["present_x", "past_x", "2"] in lines
    assert ["state_out", "state"] in lines
    assert run("compile", "cache.onnx", *asked, "--json") == 0
    found = json.loads(printed(capsys))["state"]
    assert found == [
        {"output": "present_x", "input": "past_x", "axis": 2},
        {"output": "state_out", "input": "state", "axis": None},
    ]
    assert run("inspect", "cache.plan", "--list-steps") == 0


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled with a state", "compiled without"])
def test_steps_equal_feeding_back_by_hand(cache: Path, compiled: bool, capsys: pytest.CaptureFixture[str]) -> None:
    at_compile, at_run = (["--state", "auto"], []) if compiled else ([], ["--state", "auto"])
    assert run("compile", "cache.onnx", *at_compile) == 0
    printed(capsys)
    assert run("run", "cache.plan", "--steps", "5", *at_run, "--input", "x.npz", "-o", "out.npz") == 0
    assert "5 runs of" in printed(capsys)
    session = compiler.load(compiler.compile("cache.onnx"), threads=1)
    wanted = expected(session, [rows(0)] * 5)[-1]
    with np.load("out.npz") as found:
        assert_same(dict(found), {name: value for name, value in wanted.items() if name not in PAIRS})


def test_files_give_the_first_values(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "cache.onnx", "--state", "auto") == 0
    first = {**FIRST, "past_x": rows(3, 4)["x"]}
    np.savez("first.npz", past_x=first["past_x"])
    printed(capsys)
    assert run("run", "cache.plan", "--steps", "2", "--input", "x.npz", "--input", "first.npz", "--json") == 0
    found = json.loads(printed(capsys))
    assert (found["steps"], found["state"]["length"]) == (2, 6)
    assert found["outputs"][0]["shape"] == [1, 2, 1, 6]


def test_random_inputs_follow_the_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of(DECODER, last=np.array([2]))
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "past_n + 1"
    onnx.save(model, "decoder.onnx")
    assert run("compile", "decoder.onnx", "--state", "auto") == 0
    capsys.readouterr()
    assert run("run", "decoder.plan", "--steps", "7", "--size", "batch=3", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["state"] == {"bytes": 4 * 3 * 7, "length": 7}
    assert found["outputs"][0]["shape"] == [3, 7]
    assert err.count("the inputs are random") == 1


def test_a_time_limit_is_that_of_each_run(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", "cache.onnx", "--state", "auto") == 0
    limits, original = [], compiler.Session.run

    def recorded(session: compiler.Session, inputs: Any, **options: Any) -> Any:
        limits.append(options["timeout"])
        return original(session, inputs, **options)

    monkeypatch.setattr(compiler.Session, "run", recorded)
    assert run("run", "cache.plan", "--steps", "3", "--timeout", "5") == 0
    assert limits == [5, 5, 5]
    assert run("run", "--help") == 0
    assert "Limit each run to this time. A run ends between two operations of the plan." in " ".join(
        printed(capsys).split()
    )


WRONG = [
    (["run", "cache.plan", "--steps", "2"], "--steps needs a plan with a state: add --state auto"),
    (["run", "cache.plan", "--state", "auto"], "--state is for several runs: add --steps N"),
    (["run", "cache.plan", "--steps", "0"], "--steps"),
    (["run", "cache.plan", "--steps", "2", "--state", "auto", "--profile"], "--profile times single runs"),
    (["run", "cache.plan", "--steps", "2", "--state", "past"], "'past' is neither auto nor OUTPUT=INPUT"),
    (
        ["run", "cache.plan", "--steps", "2", "--state", "auto", "--size", "m=2"],
        "no value of the state has a dimension",
    ),
    (["compile", "cache.onnx", "--state", "a.*=b"], "'a.*=b' is neither auto nor OUTPUT=INPUT"),
    (["compile", "cache.onnx", "--state", "auto", "--state", "a=b"], "'auto' finds the pairs: give no others"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_options(cache: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "cache.onnx") == 0
    assert run(*arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_pairs_that_do_not_exist(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "cache.onnx", "--state", "y=past_y") == 1
    assert "error[CC0406]: the state: there is no input 'past_y' for 'y'" in capsys.readouterr().err
    assert run("compile", "cache.onnx") == 0
    assert run("run", "cache.plan", "--steps", "2", "--state", "y=past_y") == 1
    assert "CC0406" in capsys.readouterr().err
