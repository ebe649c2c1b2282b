"""The option `--custom` of commands that compile or run models in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from compiler import custom, custom_modules
from compiler.custom_modules import import_again, import_custom, imported_modules
from compiler.errors import Error
from tests.cli.command import run
from tests.custom_ops.models import model_of
from tests.custom_ops.test_commands import CUSTOM, OPERATORS, folder

__all__ = ["folder"]

ROOT = Path(__file__).parents[2]
INVERSE = OPERATORS.replace("own::Double", "com.microsoft::SampleOp").replace("2 * x", "1 * x")
QUICK = ("--threads", "1", "--seconds", "0.01", "--json")


@pytest.fixture
def inverse() -> None:
    """A folder of a model with an operator that onnxruntime has and the compiler lacks."""
    Path("my_operators.py").write_text(INVERSE)
    model = model_of("(float[2, 2] x) => (float[2, 2] y) { i = own.SampleOp (x)  y = Relu (i) }")
    model.graph.node[0].domain = model.opset_import[1].domain = "com.microsoft"
    onnx.save(model, "inverse.onnx")
    np.savez("io.npz", x=np.float32([[2, 1], [0, 4]]))
    entry = {"name": "inverse", "file": "inverse.onnx", "cases": ["io.npz"]}
    Path("INDEX.json").write_text(json.dumps([entry]))


def forget() -> None:
    """Become a process without custom operators."""
    custom._REGISTERED.clear()
    custom_modules._IMPORTED.clear()


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("inverse")
@pytest.mark.parametrize(
    "arguments",
    [
        ("zoo", "run", "--zoo", "."),
        ("zoo", "run", "--zoo", ".", "--unpin", "--results", "results.jsonl", "--profile"),
        ("zoo", "update", "--zoo", ".", "--facts", "facts.toml"),
        ("zoo", "precision", "--zoo", "."),
        ("bisect", "inverse.onnx", "--input", "io.npz"),
        ("bisect", "inverse.onnx", "--input", "io.npz", "--what", "crash"),
        ("bench", "--zoo", ".", *QUICK),
        ("bench", "inverse.onnx", "--input", "io.npz", *QUICK, "--processes", "2", "--cold"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_the_processes_have_the_functions(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    json_option = () if "--json" in arguments else ("--json",)
    assert run(*arguments, *json_option, *CUSTOM) == 0
    assert printed(capsys)["ok"]
    forget()
    is_known = arguments[1] == "update"  # a refusal is a fact
    assert run(*arguments, *json_option) == (0 if is_known else 1)


@pytest.mark.usefixtures("inverse")
def test_results_are_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Another file of operators makes former results invalid."""
    arguments = ("zoo", "run", "--zoo", ".", "--results", "results.jsonl", "--resume", *CUSTOM)
    assert run(*arguments) == 0
    assert "inverse, pinned: equal" in capsys.readouterr().err
    assert run(*arguments) == 0
    assert "inverse, pinned" not in capsys.readouterr().err
    Path("my_operators.py").write_text(INVERSE.replace("1 * x", "2 * x"))
    assert run(*arguments) == 1


@pytest.mark.usefixtures("inverse")
def test_a_wrong_function_is_the_first_wrong_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The small model of the step needs the function too."""
    Path("my_operators.py").write_text(INVERSE.replace("1 * x", "2 * x"))
    assert run("bisect", "inverse.onnx", "--input", "io.npz", "-o", "step", "--json", *CUSTOM) == 1
    found = printed(capsys)
    assert (found["pass"], found["step"]["op"], found["files_differ"]) == (None, "com.microsoft::SampleOp", True)
    command, env = [sys.executable, "replay.py"], {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd="step", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert ": different, the largest difference is " in done.stdout


def test_diff_compares_plans_with_custom_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "model.onnx", "model.onnx", "--plans", "--run", "--json", *CUSTOM) == 0
    found = printed(capsys)
    assert [each["op"] for each in found["operators"]] == ["own::Double"]
    assert [each["name"] for each in found["numbers"]["outputs"]] == ["y"]
    forget()
    assert run("diff", "model.onnx", "model.onnx", "--plans") == 1


BATCH = ("batch", "model.plan", "--input", "rows.npz", "--output", "out", "--batch", "2")


def written() -> list[list[float]]:
    with np.load("out/part-000000.npz") as arrays:
        rows: list[list[float]] = arrays["y"].tolist()
    return rows


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_batch_runs_the_functions(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="needs Ray")
        monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
    np.savez("rows.npz", x=np.float32([[1, 2], [3, 4], [5, 6]]))
    assert run("compile", "model.onnx", *CUSTOM) == 0
    workers = ("--workers", "1") if engine == "ray" else ()
    assert run(*BATCH, "--engine", engine, *workers, *CUSTOM) == 0
    assert written() == [[2, 4], [6, 8], [10, 12]]
    Path("my_operators.py").write_text(OPERATORS.replace("2 * x", "3 * x"))
    capsys.readouterr()
    assert run(*BATCH, "--resume", *CUSTOM) == 1
    assert "the code of --custom is different" in capsys.readouterr().err


def test_other_code_in_another_process_is_refused() -> None:
    """A file that changes after the import, and one that another machine lacks."""
    import_custom("my_operators.py")
    [module] = imported_modules()
    assert module.name == str(Path("my_operators.py").absolute())
    import_again([module])
    Path("my_operators.py").write_text(OPERATORS.replace("2 * x", "3 * x"))
    with pytest.raises(Error, match=r"my_operators\.py .* is not the same code as in the process of the command"):
        import_again([module])
    Path("my_operators.py").unlink()
    with pytest.raises(Error, match=r"my_operators\.py .* cannot be imported: FileNotFoundError"):
        import_again([module])
