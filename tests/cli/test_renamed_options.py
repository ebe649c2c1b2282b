"""Former names of options: they work, the command warns on the standard error, and no help shows them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete

from compiler import Options, cli, compile
from compiler.cli.renamed import FORMER_NAMES
from tests.cli.command import run, verbs

MODELS = Path(__file__).parents[2] / "models"
WARNING = "warning: {} is deprecated in this command: use {}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(MODELS / "digits.onnx", tmp_path)
    compile(tmp_path / "digits.onnx", Options()).save(tmp_path / "digits.plan")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [["--dim", "batch=3"], ["--dim=batch=3"]])
def test_run_takes_the_former_name(folder: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "digits.plan", "--json", *options) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["outputs"][0]["shape"][0] == 3
    assert printed.err.count(WARNING.format("--dim", "--size")) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "digits.onnx", "--dim", "batch=2"],
        ["bench", "digits.plan", "--dim", "batch=2", "--threads", "1", "--seconds", "0.01"],
    ],
)
def test_other_verbs_take_the_former_name(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 0
    former = capsys.readouterr().err
    assert "picture [2, 1, 8, 8]" in former and WARNING.format("--dim", "--size") in former
    assert run(*(each.replace("--dim", "--size") for each in arguments)) == 0
    present = capsys.readouterr().err
    assert "picture [2, 1, 8, 8]" in present and "warning" not in present


@pytest.mark.parametrize("verb", ["run", "update", "precision"])
def test_zoo_takes_the_former_name(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    index = [{"name": "digits", "file": str(MODELS / "digits.onnx"), "cases": []}]
    (tmp_path / "INDEX.json").write_text(json.dumps(index))
    baseline = {"update": ["--baseline", str(tmp_path / "zoo.toml")]}.get(verb, [])
    assert run("zoo", verb, "--path", str(tmp_path), *baseline) == 1
    error = capsys.readouterr().err
    assert WARNING.format("--path", "--zoo") in error and "the model digits has no cases" in error


def test_inspect_takes_dim_for_random_inputs_of_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = ["inspect", "digits.plan", "--prepared", "--device", "cuda"]
    assert run(*gpu, "--dim", "batch=4", "--json") == 0
    former = capsys.readouterr()
    assert "warning: --dim of a plan is deprecated: use --size" in former.err
    assert run(*gpu, "--size", "batch=4", "--json") == 0
    present = capsys.readouterr()
    assert present.out == former.out and "warning" not in present.err


def test_compiling_has_its_own_dim(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "digits.onnx", "--dim", "batch=2") == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["compile", "digits.onnx", "--size", "batch=2"], ["explain", "--path", "."]])
def test_a_verb_without_the_option_refuses_both_names(folder: Path, arguments: list[str]) -> None:
    assert run(*arguments) == 2


def test_a_separator_ends_the_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--", "--dim") == 1
    printed = capsys.readouterr().err
    assert "--dim: No such file" in printed and "deprecated" not in printed


def test_batch_takes_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("rows.npz", picture=np.zeros((3, 1, 8, 8), np.float32))
    assert run("batch", "digits.plan", "--input", "rows.npz", "--output", "results", "--strict") == 0
    assert WARNING.format("--strict", "--fail-on-bad-rows") in capsys.readouterr().err


def test_inspect_takes_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", "digits.plan", "--steps") == 0
    former = capsys.readouterr()
    assert WARNING.format("--steps", "--list-steps") in former.err
    assert run("inspect", "digits.plan", "--list-steps") == 0
    present = capsys.readouterr()
    assert present.out == former.out and "warning" not in present.err


def test_a_verb_with_an_option_of_the_former_name_keeps_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "digits.onnx", "--strict") == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run", "zoo run", "batch", "inspect"])
def test_neither_help_nor_completion_shows_former_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*name.split(), "--help") == 0
    shown = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    completions = ShellComplete(cli.program, {}, "candlec", "_CANDLEC").get_completions(name.split(), "--")
    offered = {each.value for each in completions}
    own = {option for each in verbs()[name].params for option in each.opts}
    for former, present in FORMER_NAMES.items():
        assert former in own or former not in shown | offered
        assert (present in own) == (present in offered)
