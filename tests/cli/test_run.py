"""`candlec run`: inputs, outputs, profiles and the limit of memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler import array_files as arrays
from tests.cli.command import N, X, run


@pytest.mark.parametrize("inputs", [["io.npz"], ["x=x.npy", "n=n.npy"], ["io.safetensors"]], ids=" ".join)
@pytest.mark.parametrize("output", ["out.npz", "out.safetensors"])
def test_run_reads_and_writes_arrays(folder: Path, inputs: list[str], output: str) -> None:
    from safetensors.numpy import load_file, save_file

    save_file({"x": X, "n": N}, "io.safetensors")
    run("compile", "echo.onnx")
    given = [part for each in inputs for part in ("--input", each)]
    assert run("run", "echo.plan", *given, "--output", output) == 0
    outputs = dict(np.load(output)) if output.endswith(".npz") else load_file(output)
    np.testing.assert_array_equal(outputs["y"], X)
    np.testing.assert_array_equal(outputs["m"], N)


STRANGE = """
<ir_version: 10, opset_import: ["": 21]>
strange (float[2] x, seq(float[n]) s) => (bfloat16[2] file, seq(float[n]) t, string[2] u) {
    file = Cast <to = 16> (x)
    t = SequenceInsert (s, x)
    u = Cast <to = 8> (x)
}
"""


def test_run_writes_what_run_and_verify_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(STRANGE), "strange.onnx")
    assert run("compile", "strange.onnx") == 0
    one, three = np.arange(2, dtype=np.float32), np.arange(3, dtype=np.float32)
    np.savez("strange.npz", **{"x": one, "s.0": one, "s.1": three})
    assert run("run", "strange.plan", "--input", "strange.npz", "-o", "out.npz") == 0
    found = arrays.read(Path("out.npz"))
    assert {name: (each.dtype.name, each.tolist()) for name, each in found.items()} == {
        "file": ("bfloat16", [0, 1]), "t.0": ("float32", [0, 1]), "t.1": ("float32", [0, 1, 2]),
        "t.2": ("float32", [0, 1]), "u": ("object", ["0", "1"]),
    }  # fmt: skip
    assert run("run", "strange.plan", "--input", "strange.npz", "-o", "out.safetensors") == 1
    assert "cannot hold the output 'u' of string: write an .npz file" in capsys.readouterr().err
    assert not (folder / "out.safetensors").exists()
    np.save("one.npy", one)
    assert run("verify", "echo.onnx", "--input", "io.npz") == 0
    assert run("run", "strange.plan", "--input", "x=one.npy", "--input", "s.0=one.npy") == 0
    assert "sequence of 2" in capsys.readouterr().out


def test_run_without_inputs_says_that_they_are_random(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    capsys.readouterr()
    assert run("run", "echo.plan", "--size", "batch=5", "--json") == 0
    printed = capsys.readouterr()
    assert "random" in printed.err
    assert json.loads(printed.out)["outputs"][0]["shape"] == [5, 3]


def test_run_profiles_every_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    branches = """<ir_version: 10, opset_import: ["" : 20]>
    model (float[2] x, bool c) => (float[2] y) {
        y = If (c) <
            then_branch = yes () => (float[2] a) { a = Abs (x) }, else_branch = no () => (float[2] b) { b = Neg (x) }
        >
    }"""
    onnx.save(onnx.parser.parse_model(branches), "branches.onnx")
    np.savez("branches.npz", x=np.ones(2, np.float32), c=np.array(True))
    run("compile", "branches.onnx")
    capsys.readouterr()
    assert run("run", "branches.plan", "--input", "branches.npz", "--profile", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    (whole, *inner) = shown["steps"]
    assert (whole["op"], whole["depth"], whole["calls"]) == ("If", 0, shown["runs"])
    assert sorted((each["depth"], each["calls"]) for each in inner) == [(1, 0), (1, shown["runs"])]
    assert whole["seconds"] >= sum(each["seconds"] for each in inner) > 0
    assert run("run", "branches.plan", "--input", "branches.npz", "--profile") == 0
    assert "the 3 slowest steps" in capsys.readouterr().out


def test_a_model_that_is_run_is_to_be_compiled_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "echo.onnx") == 1
    assert "help: `candlec compile` compiles an ONNX model into a plan" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["", "GB", "-1", "1PB", "1e9", "two", "1000000TB", "inf", "1.GB"])
def test_a_bound_of_memory_is_a_size(folder: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "echo.plan", "--max-memory", size) == 2
    assert f"{size!r} is not a size below 10^18 bytes: write it as 2GB" in capsys.readouterr().err


def test_a_run_of_any_plan_can_be_bounded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx") == 0
    assert run("run", "echo.plan", "--input", "io.npz", "--max-memory", "1MB") == 0
    assert run("run", "echo.plan", "--input", "io.npz", "--max-memory", "8") == 1
    assert "max_memory leaves 8" in capsys.readouterr().err


ENDLESS = """
<ir_version: 10, opset_import: ["": 21]>
endless (float[64, 64] x, int64 count, bool go) => (float[64, 64] y) {
    y = Loop (count, go, x) <body = each (int64 at, bool before, float[64, 64] v)
        => (bool after, float[64, 64] w) { after = Identity (before) q = MatMul (v, v) w = Tanh (q) }>
}
"""


def test_a_run_ends_at_its_time_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(ENDLESS), "endless.onnx")
    assert run("compile", "endless.onnx") == 0
    np.savez("endless.npz", x=np.ones((64, 64), np.float32), count=np.int64(2**62), go=np.True_)
    capsys.readouterr()
    assert run("run", "endless.plan", "--input", "endless.npz", "--timeout", "0.05") == 1
    assert capsys.readouterr().err == "error: the run reached its time limit: --timeout sets it\n"
    assert run("run", "endless.plan", "--input", "endless.npz", "--timeout", "0") == 2


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("x=wide.npy", 1, '\n  help: save the array as array.astype("float32") if this conversion keeps its numbers\n'),
        ("wide.npy", 2, "an .npy file holds one input, so name this input: --input x=wide.npy\n"),
    ],
)
def test_an_error_of_an_input_says_what_to_do(
    given: str, code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", "echo.onnx") == 0
    np.save("wide.npy", np.ones((2, 3)))
    capsys.readouterr()
    assert run("run", "echo.plan", "--input", given, "--input", "n=n.npy", "-o", "found.npz") == code
    assert capsys.readouterr().err.endswith(said)


LAYER = """
<ir_version: 10, opset_import: ["": 21]>
layer (float[1, 2] x) => (float[1, 2] y) <float[2] w = {1, 1}> { y = Mul (x, w) }
"""


def test_run_takes_other_weights(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import save_file

    onnx.save(onnx.parser.parse_model(LAYER), "layer.onnx")
    np.save("x.npy", np.ones((1, 2), np.float32))
    save_file({"w": np.array([2, 3], np.float32)}, "tuned.safetensors")
    given = ("run", "layer.plan", "--input", "x=x.npy", "--output", "out.npz", "--weights", "tuned.safetensors")
    assert run("compile", "layer.onnx", "--keep-weights") == 0
    assert run(*given) == 0
    np.testing.assert_array_equal(np.load("out.npz")["y"], [[2, 3]])
    save_file({"v": np.array([2, 3], np.float32)}, "tuned.safetensors")
    capsys.readouterr()
    assert run(*given) == 1
    assert '"v": the plan has no such weight. Similar names: "w".' in capsys.readouterr().err
    assert run("compile", "layer.onnx") == 0
    assert run(*given) == 1
    said = capsys.readouterr().err
    assert "the plan lists no weights" in said and "candlec compile --keep-weights" in said
    assert run("compile", "layer.onnx", "--keep-weights", "--weights", "int8") == 2
    assert "leave it out, or --keep-weights" in capsys.readouterr().err
