"""The sentences of errors: files without permission, numbers outside a range, misspelled names, and advice."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import onnx.parser
import pytest

from compiler import CompileError, Diagnostic
from compiler.cli import VERBS, program
from compiler.cli.failure import report
from compiler.cli.tables.prepared import show_prepared
from compiler.runtime.prepared import Prepared
from compiler.zoo.comparison import _COSTS
from tests.cli.command import run

USAGE = [
    (["verify", "echo.onnx", "--tolerance", "x"], "'x' is not a number\n"),
    (["verify", "echo.onnx", "--tolerance", "-1"], "'-1' is not a number from 0\n"),
    (["bench", "echo.onnx", "--seconds", "0"], "'0' is not a number above 0\n"),
    (["bench", "echo.onnx", "--seconds", "inf"], "'inf' is not a finite number\n"),
    (["bench", "echo.onnx", "--threads", "0"], "'0' is not a whole number from 1 to 1024\n"),
    (["run", "echo.plan", "--seed", "1.5"], "'1.5' is not a whole number from 0\n"),
    (["run", "echo.plan", "--size", "n=-1"], "'n=-1' is not NAME=N, where N is a whole number from 0 to 10^18 - 1\n"),
    (["rum"], "Error: there is no command 'rum': did you mean run?\n"),
    (["zoo", "updat"], "Error: there is no command 'updat': did you mean update?\n"),
    (["melt"], "Error: there is no command 'melt': `candlec --help` lists them\n"),
    (
        ["compile", "echo.onnx", "--passes", "foo,fold_constans,drop_noops"],
        "there is no pass 'foo'; there is no pass 'fold_constans': did you mean fold_constants?\n"
        "  help: `candlec compile --help` lists the passes\n",
    ),
    (["compile", "echo.onnx", "--size", "batch=2"], "leave it out, or add one of them; --dim fixes a dimension\n"),
    (["inspect", "echo.plan", "--prepared", "--list-steps"], "--prepared shows every step: leave out --list-steps\n"),
    (["compile", "echo.onnx", "--passes", "sort_nodes"], "--passes: sort_nodes always runs: leave it out\n"),
]


@pytest.mark.parametrize(("arguments", "said"), USAGE, ids=[" ".join(arguments) for arguments, _ in USAGE])
def test_wrong_usage_is_explained(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err.endswith(said)


def test_the_help_has_ranges_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    run("bench", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "[default: 2.0; above 0]" in shown and "[default: 1; from 1 to 100]" in shown


def parameters(command: click.Command) -> Iterator[click.Parameter]:
    """Every parameter of a command and of those below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        yield from (each for one in below if one is not None for each in parameters(one))


def test_no_option_checks_permission_to_read() -> None:
    paths = [each.type for each in parameters(program) if isinstance(each.type, click.Path)]
    assert len(paths) > len(VERBS)
    assert not any(each.readable for each in paths)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compile", "echo.onnx"], "error[CC0102]: echo.onnx: Permission denied\n"),
        (["check", "echo.onnx"], "error[CC0102]: echo.onnx: Permission denied\n"),
        (["run", "echo.plan"], "error: echo.plan: Permission denied\n"),
        (["inspect", "echo.plan"], "error: echo.plan: Permission denied\n"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_file_without_permission_is_no_wrong_usage(
    arguments: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("compile", "echo.onnx")
    capsys.readouterr()
    before = io.open

    def opened(file: Any, *options: Any, **named: Any) -> Any:
        if str(file) == arguments[1]:
            raise PermissionError(13, "Permission denied", str(file))
        return before(file, *options, **named)

    monkeypatch.setattr("os.access", lambda path, mode, **_: str(path) != arguments[1] or mode != os.R_OK)
    monkeypatch.setattr("io.open", opened)  # of pathlib
    monkeypatch.setattr("builtins.open", opened)
    assert run(*arguments) == 1
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("verb", ["compile", "check", "inspect"])
def test_every_verb_gives_a_missing_model_the_same_code(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(verb, "missing.onnx") == 1
    assert "error[CC0102]: missing.onnx: No such file or directory\n" in capsys.readouterr().err


def test_data_and_text_give_the_same_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "missing.plan", "--json") == 1
    printed = capsys.readouterr()
    assert printed.err == "error: missing.plan: No such file or directory\n"
    assert json.loads(printed.out)["error"] == "missing.plan: No such file or directory"


def test_an_input_without_memory_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("compiler.accuracy.random_inputs._random", refused)
    run("compile", "echo.onnx")
    capsys.readouterr()
    assert run("run", "echo.plan") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: no memory for the random input '")
    assert said.endswith("]: give smaller sizes with --size\n")


def test_an_empty_plan_is_copied_and_not_compiled_from_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.plan").touch()
    assert run("run", "empty.plan") == 1
    assert capsys.readouterr().err.endswith("the file is empty: copy it or compile it again\n")


def test_equal_errors_count_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(CompileError([Diagnostic("CC0301", text) for text in ("a", "a", "b")])) == 1
    assert capsys.readouterr().err.endswith("error: the compiler refuses the model: 2 errors in 3 places\n")


def test_an_unknown_peak_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    values: dict[str, Any] = {each.name: 0 for each in fields(Prepared)}
    show_prepared(Prepared(**{**values, "steps": [], "isa": "x", "unknown_steps": 11}), "fix sizes with --dim")
    assert "peak memory of values: unknown for 11 steps (fix sizes with --dim)\n" in capsys.readouterr().out


FOLDER = "check the path: it starts at the current folder"
GONE = f"No such file or directory\n  help: {FOLDER}; see `candlec explain CC0102`\n\n"
BROKEN = "it is truncated, or of another format\n  help: download or export it again; see `candlec explain CC0101`\n\n"
FINDINGS = [
    (["compile", "gone.onnx"], 1, GONE),
    (["check", "."], 1, "Is a directory\n  help: see `candlec explain CC0102`\n\n"),
    (["compile", "broken.onnx"], 1, BROKEN),
    (["compile", "echo.plan"], 1, "candlec run` runs it; see `candlec explain CC0101`\n\n"),
    (["compile", "echo.onnx", "--dim", "bath=1", "--dim", "time=1"], 2, "error: 2 errors\n"),
    (["run", "echo.plan", "--size", "bath=1"], 2, "no input has a dimension 'bath': did you mean batch?\n"),
    (["compile", "refused.onnx"], 1, "error: the compiler refuses the model: 2 errors\n"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "said"), FINDINGS, ids=[" ".join(arguments) for arguments, _, _ in FINDINGS]
)
def test_the_compiler_refuses_only_models(
    arguments: list[str], code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.onnx").write_bytes(Path("echo.onnx").read_bytes()[:-1])
    assert run("compile", "echo.onnx") == 0
    assert run(*arguments) == code
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize(
    ("codes", "code", "said"),
    [(["CC0505", "CC0403"], 2, ""), (["CC0505", "CC0301"], 1, "the compiler refuses the model: ")],
)
def test_the_compiler_does_not_refuse_a_list_of_passes(
    codes: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(CompileError([Diagnostic(each, "a finding") for each in codes])) == code
    assert f"\nerror: {said}{len(codes)} error" in capsys.readouterr().err


def written(name: str, graph: str) -> None:
    """Write a model, and its plan."""
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {graph}'), f"{name}.onnx")
    assert run("compile", f"{name}.onnx") == 0


def test_a_model_without_inputs_has_no_random_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written("constant", "() => (float[2] y) { y = Constant <value = float[2] {1, 2}> () }")
    assert run("run", "constant.plan") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        (
            "k",
            "the command chose random inputs and their sizes: --size k=N sets another size, or give real inputs with",
        ),
        ("2", "the command chose random inputs: give real inputs with"),
    ],
)
def test_an_error_of_random_inputs_suggests_real_ones(
    shape: str, advice: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = "s = SplitToSequence <axis = 0> (x, parts)  n = SequenceLength (s)"
    written("parts", f"(float[6] x, int64[{shape}] parts) => (int64 n) {{ {nodes} }}")
    assert run("run", "parts.plan") == 1
    assert capsys.readouterr().err.endswith(f"\n  help: {advice} --input\n")
    np.savez("parts.npz", x=np.zeros(6, np.float32), parts=np.array([4, 2]))
    assert run("run", "parts.plan", "--input", "parts.npz") == 0


def test_the_help_of_update_describes_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    run("zoo", "update", "--help")
    shown = capsys.readouterr().out
    assert [fact for fact in _COSTS if fact not in shown] == []


def test_the_legend_of_alternatives_has_a_line_for_each_column(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("product", "(float[8, 64] x, float[64, 64] w) => (float[8, 64] y) { y = MatMul (x, w) }")
    capsys.readouterr()
    assert run("inspect", "product.plan", "--prepared", "--alternatives") == 0
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert [line.partition(":")[0] for line in lines] == ["expected", "in blocks"]
    written("sum", "(float[8] x) => (float[8] y) { y = Add (x, x) }")
    capsys.readouterr()
    assert run("inspect", "sum.plan", "--prepared", "--alternatives") == 0
    assert capsys.readouterr().out == "no step has several forms\n"
