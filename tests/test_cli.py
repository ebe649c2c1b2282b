"""The command line: what each verb prints and writes, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.cli import VERBS, arrays, main

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
echo (float[batch, 3] x, int64[2] n) => (float[batch, 3] y, int64[2] m) { y = Identity(x)  m = Identity(n) }
"""
REFUSED = """
<ir_version: 9, opset_import: ["": 20, "private": 1]>
odd (float[2] x) => (float[2] z) { y = private.Melt(x)  z = private.Freeze(y) }
"""
# onnxruntime has no AveragePool of opset 6.
OLD = """
<ir_version: 8, opset_import: ["": 6]>
old (float[1, 1, 2] x) => (float[1, 1, 1] y) { y = AveragePool <kernel_shape = [2]> (x) }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.array([3, 4])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with models and inputs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    onnx.save(onnx.parser.parse_model(MODEL), "echo.onnx")
    onnx.save(onnx.parser.parse_model(REFUSED), "refused.onnx")
    np.savez("io.npz", x=X, n=N)
    np.save("x.npy", X)
    np.save("n.npy", N)
    return tmp_path


def run(*arguments: str) -> int:
    """The exit code of `candlec` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {verb} " in printed for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verb, "--help") == 0
    printed = capsys.readouterr().out
    assert "Usage: candlec " + verb in printed
    assert f"candlec {verb} " in printed.partition("\n")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["melt"],
        ["compile"],
        ["compile", "echo.onnx", "--dim", "batch"],
        ["compile", "echo.onnx", "--dim", "batch=-1"],
        ["compile", "echo.onnx", "--heat"],
        ["run", "echo.plan", "--device", "tpu"],
        ["run", "echo.plan", "--threads", "0"],
        ["run", "echo.plan", "--output", "out.txt"],
        ["run", "echo.plan", "--output", "nowhere/out.npz"],
        ["verify", "echo.onnx", "--size", "bath=2"],
        ["verify", "echo.onnx", "--size", "batch=2", "--input", "io.npz"],
        ["compile", "echo.onnx", "-o", "nowhere/echo.plan"],
        ["compile", "echo.onnx", "--report", "."],
        ["compile", "echo.onnx", "--no-optimize", "--passes", "drop_noops"],
        ["bench"],
        ["bench", "echo.onnx", "--model", "echo"],
        ["bench", "echo.onnx", "--seconds", "0"],
        ["bench", "--zoo", ".", "--input", "io.npz"],
        ["bench", "echo.onnx", "--seconds", "nan"],
        ["bench", "echo.onnx", "--seconds", "inf"],
        ["bench", "echo.onnx", "--threads", "100000"],
        ["bench", "echo.onnx", "--size", "bath=2"],
        ["bench", "echo.onnx", "--against", "onnxruntime,melt"],
        ["bench", "echo.onnx", "--against", "nothing,onnxruntime"],
        ["bench", "echo.onnx", "--processes", "0"],
        ["bench", "echo.onnx", "--markdown", "nowhere/table.md"],
        ["compile", "echo.onnx", "--dim", "batch=2", "--dim", "batch=3"],
        ["compile", "echo.onnx", "--dim", "batch=1" + 20 * "0"],
        ["compile", "echo.onnx", "--dim", "batch=²"],
        ["compile", "echo.onnx", "--passes", "infer_shapes,melt"],
        ["compile", "echo.onnx", "--passes", "sort_nodes"],
        ["compile", "."],
        ["run", "made.plan", "--size", "bath=2"],
        ["run", "made.plan", "--input", "io.npz", "--size", "batch=2"],
        ["run", "echo.plan", "--seed", "-1"],
        ["run", "echo.plan", "--threads", "100000"],
        ["run", "echo.plan", "--input", "x=io.npz"],
        ["run", "echo.plan", "--input", "x.npy"],
        ["verify", "echo.onnx", "--seed", "-3"],
        ["verify", "echo.onnx", "--tolerance", "-1"],
        ["verify", "echo.onnx", "--tolerance", "nan"],
        ["verify", "echo.onnx", "--input", "io.npz", "--input", "x=x.npy"],
        ["explain", "CC9999"],
        ["export", "nowhere", "-o", "x.onnx"],
        ["export", "nets:build", "-o", "x.txt"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiler.compile("echo.onnx").save("made.plan")
    before = set(folder.iterdir())
    assert run(*arguments) == 2
    assert "Usage:" in capsys.readouterr().err
    assert run(*arguments, "--json") == 2
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False and told["error"]
    assert set(folder.iterdir()) == before


OVERWRITING = [
    (["compile", "echo.onnx", "-o", "echo.onnx"], "echo.onnx is an input"),
    (["compile", "echo.onnx", "-o", "link.onnx"], "link.onnx is an input"),
    (["compile", "echo.onnx", "-o", "inner/../echo.onnx"], "is an input"),
    (["compile", "model.plan"], "model.plan is an input"),
    (["compile", "echo.onnx", "-o", "a.plan", "--report", "a.plan"], "a.plan is the --output"),
    (["compile", "echo.onnx", "--report", "echo.plan"], "echo.plan is the --output"),
    (["compile", "outside.onnx", "-o", "weights.bin"], "weights.bin is an input"),
    (["compile", "outside.onnx", "--report", "weights.bin"], "weights.bin is an input"),
    (["run", "echo.npz", "-o", "echo.npz"], "echo.npz is an input"),
    (["run", "echo.plan", "--input", "io.npz", "-o", "io.npz"], "io.npz is an input"),
    (["zoo", "run", "--zoo", ".", "--junit", "INDEX.json"], "INDEX.json is an input"),
    (["zoo", "run", "--zoo", ".", "--junit", "io.npz"], "io.npz is an input"),
    (["zoo", "update", "--zoo", ".", "--baseline", "io.npz"], "io.npz is an input"),
]


@pytest.mark.parametrize(("arguments", "said"), OVERWRITING, ids=[" ".join(each) for each, _ in OVERWRITING])
def test_no_output_is_an_input_or_another_output(
    arguments: list[str], said: str, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (zoo / "inner").mkdir()
    (zoo / "link.onnx").symlink_to("echo.onnx")
    (zoo / "model.plan").write_bytes((zoo / "echo.onnx").read_bytes())
    graph = "outside (float[2] x) => (float[2] y) <float[2] w> { y = Add(x, w) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(model, "outside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    run("compile", "echo.onnx", "-o", "echo.plan")
    (zoo / "echo.npz").write_bytes((zoo / "echo.plan").read_bytes())
    before = {path: path.read_bytes() for path in zoo.iterdir() if path.is_file()}
    capsys.readouterr()
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in zoo.iterdir() if path.is_file()} == before


def test_compile_writes_through_links_and_to_pipes(folder: Path) -> None:
    run("compile", "echo.onnx")
    plan = (folder / "echo.plan").read_bytes()
    (folder / "link.plan").symlink_to("inner.plan")
    assert run("compile", "echo.onnx", "-o", "link.plan") == 0
    assert (folder / "link.plan").is_symlink()
    assert (folder / "inner.plan").read_bytes() == plan
    os.mkfifo("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_bytes()), daemon=True)
    reader.start()
    assert run("compile", "echo.onnx", "-o", "pipe") == 0
    reader.join(10)
    assert read == [plan]


def test_passes_may_be_separated_by_spaces_too(folder: Path) -> None:
    assert run("compile", "echo.onnx", "--passes", "drop_noops, drop_identities") == 0


def test_former_names_of_passes_are_taken(folder: Path) -> None:
    with pytest.warns(DeprecationWarning, match="the pass name read_sizes is deprecated: use move_shapes_to_inputs"):
        assert run("compile", "echo.onnx", "--passes", "read_sizes") == 0
    assert "move_shapes_to_inputs" in compiler.Plan.load(folder / "echo.plan").document["passes"]


def test_compile_writes_a_plan_beside_the_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx") == 0
    assert "echo.plan" in capsys.readouterr().out
    assert (folder / "echo.plan").stat().st_size > 0


def test_two_compiles_give_the_same_bytes(folder: Path) -> None:
    assert run("compile", "echo.onnx", "-o", "a.plan") == 0
    assert run("compile", "echo.onnx", "-o", "b.plan") == 0
    assert (folder / "a.plan").read_bytes() == (folder / "b.plan").read_bytes()


def test_compile_tells_what_was_done_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = " ".join(f"v{index + 1} = {'Tanh' if index % 2 else 'Sin'}(v{index})" for index in range(30))
    text = f'<ir_version: 10, opset_import: ["": 20]> g (float[n] v0) => (float[n] v30) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), "long.onnx")
    assert run("compile", "long.onnx", "--passes", "drop_dead_nodes, fuse_elementwise") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)
    told = {line.split()[0]: line.partition(" ms ")[2].strip() for line in lines if " ms " in line}
    assert told == {"infer_shapes": "shapes inferred: 29", "fuse_elementwise": "steps fused: 2"}


def test_compile_tells_programs_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True
    assert told["bytes"] == (folder / "echo.plan").stat().st_size


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


@pytest.mark.parametrize("verb", [["run", "sequence.plan"], ["verify", "sequence.onnx"]], ids=" ".join)
def test_a_sequence_is_not_made_at_random(verb: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "g (seq(float[n]) s) => (seq(float[n]) t) { t = Identity (s) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "sequence.onnx")
    run("compile", "sequence.onnx")
    assert run(*verb) == 2
    assert "the input 's' is a sequence, which has no random value: give the inputs" in capsys.readouterr().err
    np.savez("s.npz", **{"s.0": np.zeros(2, np.float32)})
    assert run(*verb, "--input", "s.npz") == 0


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
    told = json.loads(capsys.readouterr().out)
    (whole, *inner) = told["steps"]
    assert (whole["op"], whole["depth"], whole["calls"]) == ("If", 0, told["runs"])
    assert sorted((each["depth"], each["calls"]) for each in inner) == [(1, 0), (1, told["runs"])]
    assert whole["seconds"] >= sum(each["seconds"] for each in inner) > 0
    assert run("run", "branches.plan", "--input", "branches.npz", "--profile") == 0
    assert "the 3 slowest steps" in capsys.readouterr().out


def test_verify_compares_with_onnxruntime(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    assert run("verify", "echo.onnx", "echo.plan", "--input", "io.npz") == 0
    assert "warning" not in capsys.readouterr().err
    assert run("verify", "echo.onnx", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["max_abs"]) for each in told["outputs"]] == [("y", 0.0), ("m", 0.0)]


def test_verify_fails_for_another_models_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = MODEL.replace("m = Identity(n)", "m = Constant<value_ints = [9, 9]>()")
    onnx.save(onnx.parser.parse_model(other), "other.onnx")
    run("compile", "other.onnx")
    assert run("verify", "echo.onnx", "other.plan", "--input", "io.npz") == 1
    printed = capsys.readouterr()
    assert "2 of 2 elements differ" in printed.out
    assert "warning: other.plan is not the plan of echo.onnx" in printed.err


def test_export_does_not_write_over_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "def build(): return None, ()\n"
    Path("small_net.py").write_text(text)
    assert run("export", "small_net:build", "-o", "small_net.py") == 2
    assert "small_net.py: the name of a model file must end with .onnx" in capsys.readouterr().err
    assert Path("small_net.py").read_text() == text


FACTORIES = """
value = 1
def strange(): return 1
def broken(): raise ValueError("no weights")
def torchless(): import torch
"""
TORCHLESS = 'this needs torch, which is not installed: run pip install "candle-compiler[export]"'


@pytest.mark.parametrize(
    ("factory", "code", "said"),
    [
        ("nowhere:build", 2, "nowhere:build: ModuleNotFoundError: No module named 'nowhere'"),
        ("factories:missing", 2, "factories:missing: AttributeError: "),
        ("factories:value", 2, "factories:value: TypeError: 'int' object is not callable"),
        (
            "factories:strange",
            2,
            "must return (module, arguments) or (module, arguments, dynamic), but returned a int",
        ),
        ("factories:broken", 2, "factories:broken: ValueError: no weights"),
        ("factories:torchless", 1, TORCHLESS),
    ],
)
def test_export_says_what_is_wrong_with_a_factory(
    factory: str,
    code: int,
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "factories.py").write_text(FACTORIES)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    assert run("export", factory, "-o", "x.onnx") == code
    printed = capsys.readouterr().err
    assert said in printed
    assert ("Usage:" in printed) == (code == 2)
    assert "please report it" not in printed


def test_a_model_that_is_run_is_to_be_compiled_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "echo.onnx") == 1
    assert "help: `candlec compile` compiles an ONNX model into a plan" in capsys.readouterr().err


def test_json_has_no_nan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    np.savez("nan.npz", x=np.full((1, 3), np.nan, np.float32), n=N)
    capsys.readouterr()
    assert run("run", "echo.plan", "--input", "nan.npz", "--json") == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["outputs"][0]["max"] is None


def test_check_names_what_is_in_the_way(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "echo.onnx") == 0
    assert run("check", "refused.onnx") == 1
    printed = capsys.readouterr().err
    assert "Melt" in printed
    assert "Freeze" in printed


def test_check_does_not_pass_what_it_could_not_look_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "g (float[2] x) => (y, z) { a = Melt(x) y = Celu<heat = 1>(a) z = Relu(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {graph}'), "behind.onnx")
    assert run("check", "behind.onnx") == 1
    rows = {line.split()[1]: line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1] in set("✓✗?")}
    assert rows == {"Melt": "✗", "Celu": "?", "Relu": "✓"}
    assert run("check", "behind.onnx", "--json") == 1
    assert json.loads(capsys.readouterr().out)["unchecked"] == ["Celu(y)"]


def test_check_tells_programs_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "refused.onnx", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert [each["code"] for each in told["diagnostics"]] == ["CC0201", "CC0201"]


def test_a_refused_model_leaves_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(folder.iterdir())
    assert run("compile", "refused.onnx", "-o", "refused.plan") == 1
    assert run("compile", "refused.onnx", "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["diagnostics"]) == 2
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("file", ["echo.onnx", "echo.plan"])
def test_inspect_shows_inputs_and_operators(folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    capsys.readouterr()
    assert run("inspect", file) == 0
    assert "[batch, 3]" in capsys.readouterr().out
    assert run("inspect", file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["operators"] == {"Identity": 2}


HOLDING = """
<ir_version: 9, opset_import: ["": 20], producer_name: "hand", producer_version: "2">
holding (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}, int64[1] n = {3}> {
    y = If (c) <
        then_branch = yes () => (float[2] a) { k = Constant <value = float[1] {4.0}> ()  a = Add (x, k) },
        else_branch = no () => (float[2] b) { b = Mul (x, w) }
    >
}
"""


def test_inspect_counts_all_that_a_model_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(HOLDING), "holding.onnx")
    assert run("inspect", "holding.onnx", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["constants"], told["constant_bytes"], told["parameters"]) == (3, 20, 3)
    assert told["bytes"] == (folder / "holding.onnx").stat().st_size
    assert told["producer"] == "hand 2"


def test_inspect_says_nothing_of_what_there_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", "echo.onnx") == 0
    (size,) = (line for line in capsys.readouterr().out.splitlines() if "producer" in line or "echo.onnx" in line)
    assert size == f"echo.onnx: a model, {(folder / 'echo.onnx').stat().st_size} B"


def test_inspect_prints_the_steps_of_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "flat (float[batch, 3] x) => (float[n, m] y) { y = Flatten <axis = 1> (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "flat.onnx")
    run("compile", "flat.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("inspect", "flat.plan", "--steps") == 0
    assert "%1:y = Flatten(%0:x, axis=1): float32 [batch, 3]\n" in capsys.readouterr().out
    assert run("inspect", "flat.plan", "--steps", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["operators"] == {"Flatten": 1}
    assert told["steps"] == [
        {
            "op": "Flatten",
            "inputs": ["%0:x"],
            "outputs": ["%1:y"],
            "types": ["float32 [batch, 3]"],
            "attributes": {"axis": 1},
            "origin": {"nodes": ["Flatten(y)"], "module": "", "source": ""},
        }
    ]


def test_inspect_prints_the_nodes_of_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(HOLDING), "holding.onnx")
    assert run("inspect", "holding.onnx", "--steps") == 0
    printed = capsys.readouterr().out
    assert "y = If(c)\n" in printed
    assert "  else_branch:\n    b = Mul(x, w)\n" in printed
    assert run("inspect", "holding.onnx", "--steps", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    (node,) = told["steps"]
    assert (node["op"], node["inputs"], node["outputs"], told["functions"]) == ("If", ["c"], ["y"], [])
    assert [each["op"] for each in node["attributes"]["then_branch"]] == ["Constant", "Add"]


def test_inspect_prints_functions_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """<ir_version: 9, opset_import: ["": 20, "own": 1]>
    m (float[n] x) => (float[n] y) { y = own.scale <by = 2.0> (x) }
    <domain: "own", opset_import: ["": 20]>
    scale <by> (x) => (y) { k = Constant <value_float: float = @by> () y = Mul (x, k) }"""
    onnx.save(onnx.parser.parse_model(text), "scaled.onnx")
    assert run("inspect", "scaled.onnx", "--steps") == 0
    printed = capsys.readouterr().out
    assert "function own.scale:\n  input x" in printed
    assert "  k = Constant(value_float=@by)\n" in printed
    assert run("inspect", "scaled.onnx", "--steps", "--json") == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    assert [each["op"] for each in function["steps"]] == ["Constant", "Mul"]
    assert function["steps"][0]["attributes"] == {"value_float": "@by"}


MISTAKEN = [
    (["run", "echo.onnx"], "echo.onnx is not a plan but looks like an ONNX model: compile it first"),
    (["verify", "echo.onnx", "echo.onnx"], "echo.onnx is not a plan but looks like an ONNX model"),
    (["run", "text.plan"], "text.plan: cannot read the plan: "),
    (["inspect", "text.plan"], "text.plan: cannot read the plan: "),
    (["compile", "echo.plan", "-o", "other.plan"], "echo.plan is a plan, not a model"),
    (["inspect", "text.onnx"], "not an ONNX model"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKEN, ids=[" ".join(each) for each, _ in MISTAKEN])
def test_what_is_taken_for_something_else_is_named(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("compile", "echo.onnx")
    for name in ("text.plan", "text.onnx"):
        Path(name).write_text("This is text.\n")
    capsys.readouterr()
    assert run(*arguments) == 1
    assert said in capsys.readouterr().err


def test_a_file_is_inspected_as_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    Path("echo.plan").rename("plan")
    Path("echo.onnx").rename("echo.plan")
    for file, kind in (("plan", "plan"), ("echo.plan", "model")):
        capsys.readouterr()
        assert run("inspect", file, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_every_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    from compiler.errors import PAGES

    assert run("explain") == 0
    listed = capsys.readouterr().out
    for code in PAGES:
        assert code in listed
        assert run("explain", code.lower()) == 0
        assert code in capsys.readouterr().out


def test_ops_knows_what_can_be_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops", "Identity") == 0
    assert run("ops", "Identity", "Melt") == 1
    assert "the compiler does not support Melt" in capsys.readouterr().err
    assert run("ops", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    listed = told["operators"]
    assert told["ok"]
    assert {"operator": "HannWindow", "newest": 17, "family": "(its ONNX function body)", "domain": "ai.onnx"} in listed
    assert "candle.plan" not in {each["domain"] for each in listed}
    assert run("ops", "Melt", "relu", "--json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"ok": False, "operators": [], "missing": ["Melt", "relu"]}
    assert printed.err == "the compiler does not support Melt\nthe compiler does not support relu: did you mean Relu?\n"


def test_what_ops_lists_as_expanded_is_compiled(folder: Path) -> None:
    window = '<ir_version: 9, opset_import: ["": 20]> m (int64 n) => (float[k] y) { y = HannWindow (n) }'
    onnx.save(onnx.parser.parse_model(window), "window.onnx")
    assert run("check", "window.onnx") == 0


@pytest.fixture
def zoo(folder: Path) -> Path:
    """A folder of one model, with its index."""
    (folder / "INDEX.json").write_text(json.dumps([{"name": "echo", "file": "echo.onnx", "cases": ["io.npz"]}]))
    return folder


@pytest.mark.parametrize("way", [[], ["--unpin"]], ids=["pinned", "unpinned"])
def test_zoo_runs_every_model_every_way(zoo: Path, way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml", "--json", *way) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and [each["ok"] for each in told["outcomes"]] == [True] * 4
    assert '<testsuite name="zoo" tests="4" failures="0">' in (zoo / "zoo.xml").read_text()


# The scale makes rounding errors of the convolution large; onnxruntime and optimized plans fold the one into the other.
CANCELING = """
<ir_version: 8, opset_import: ["" : 13]>
unsure (float[1, 1, 64] x) => (float[1, 1, 64] y)
<float[1, 1, 1] w = {1.1}, float[1] scale = {1000000}, float[1] shift = {0}, float[1] mean = {1.1}, float[1] var = {1}>
{
    c = Conv (x, w)
    y = BatchNormalization (c, scale, shift, mean, var)
}
"""


@pytest.fixture
def canceling(folder: Path) -> Path:
    """A folder with a model whose rounding errors are large."""
    onnx.save(onnx.parser.parse_model(CANCELING), "unsure.onnx")
    noise = np.random.default_rng(0).standard_normal((1, 1, 64)) / 100_000
    np.savez("unsure.npz", x=(1 + noise).astype(np.float32))
    (folder / "INDEX.json").write_text(json.dumps([{"name": "unsure", "file": "unsure.onnx", "cases": ["unsure.npz"]}]))
    return folder


@pytest.fixture
def unsure(canceling: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and the model has no form in double precision."""
    monkeypatch.setattr("compiler.accuracy.verify.in_double_precision", lambda _: None)
    return canceling


def test_rounding_like_onnxruntimes_is_equal(canceling: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".") == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"✓ unsure, unsure: y: difference \S+, tolerance \S+; error against double precision \S+, onnxruntime's \S+\n",
        printed,
    )
    assert "over all ways: 1 of 1 model equals onnxruntime's\n" in printed
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz") == 0
    printed = capsys.readouterr().out
    assert "✓" in printed and "1 of 1 output equals onnxruntime's" in printed
    assert "y: against this compiler's result in double precision, the output's error is " in printed


def test_zoo_calls_equal_only_what_is_within_the_tolerance(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"]
    assert {each["way"]: (each["verdict"], each["ok"]) for each in told["outcomes"]} == {
        "optimized, 1 thread": ("equal", True),
        "optimized, 2 threads": ("equal", True),
        "plain, 1 thread": ("uncertain", False),
        "plain, 2 threads": ("uncertain", False),
    }
    report = (unsure / "zoo.xml").read_text()
    assert '<testsuite name="zoo" tests="4" failures="2">' in report
    assert (
        report.count(
            '<failure message="it is uncertain, and neither INDEX.json nor the baseline allows it&#10;unsure: y: '
        )
        == 2
    )
    assert run("zoo", "run", "--zoo", ".") == 1
    printed = capsys.readouterr()
    assert printed.out.count("≈") == 2 + 1
    assert "from the nearer of onnxruntime's two results" in printed.out
    summary = "0 of 1 model equals onnxruntime's; 1 is uncertain: it differs by less than the reference noise"
    assert summary in printed.out
    assert printed.err.count("error: unsure: it is uncertain, and neither INDEX.json nor the baseline allows it") == 1
    assert "help: `candlec zoo update --baseline FILE` records the results" in printed.err


def test_an_index_may_say_why_a_model_is_uncertain(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = json.loads((unsure / "INDEX.json").read_text())
    for reason, code in (("it cancels", 0), ("", 1), (True, 1)):
        (unsure / "INDEX.json").write_text(json.dumps([entry | {"uncertain": reason}]))
        assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml") == code
    printed = capsys.readouterr()
    assert printed.out.count("unsure: it cancels") == 1
    assert "the model unsure has the uncertain True, not a string" in printed.err


DIFFERENCE = "y: difference {}, tolerance {}; {} from the nearer of onnxruntime's two results, {} apart"
MEASURED = f"""\
[unsure]
reason = "As measured: unsure: {DIFFERENCE}"
pinned = {{{{verdict = "uncertain", at_most = {{}}}}}}
unpinned = {{{{verdict = "uncertain", at_most = {{}}}}}}
"""


def test_a_baseline_says_what_is_not_equal(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    written = (unsure / "zoo.toml").read_text()
    numbers = re.findall(r"(?<= )[0-9.]+(?:e[-+][0-9]+)?", written)
    assert written == MEASURED.format(*numbers)
    assert capsys.readouterr().out.startswith(f"unsure: new: pinned uncertain, at most {numbers[-1]} ×; unpinned")
    for way in ([], ["--unpin"]):
        assert run("zoo", "run", "--zoo", ".", "--baseline", "zoo.toml", *way, "--json") == 0
        assert json.loads(capsys.readouterr().out)["stale"] == []
    (unsure / "zoo.toml").write_text("# why\n\n" + re.sub('".*"\n', '"It cancels"\n', written, count=1))
    before = (unsure / "zoo.toml").read_text()
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    assert (unsure / "zoo.toml").read_text() == before
    assert capsys.readouterr().out == "zoo.toml: 1 model with known differences\n"


LINE = """
[{}]
reason = "It cancels"
pinned = {{ verdict = "{}", at_most = {} }}
"""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("unsure", "uncertain", 1e6), ""),
        (("unsure", "uncertain", 1.5), "× the tolerance, but the baseline allows 1.5 ×"),
        (("unsure", "different", 1e6), "it is now uncertain in every way, but different in the baseline"),
        (("other", "uncertain", 1e6), "other: it is in the baseline, but not in the folder"),
        (("echo", "uncertain", 2), "echo: it is now equal in every way, but uncertain in the baseline"),
        (("unsure", "equal", 2), "the verdict must be uncertain or different, not 'equal'"),
        (("unsure", "uncertain", 0.5), "at_most must be a number above 1, not 0.5"),
    ],
)
def test_a_baseline_has_to_be_so(
    unsure: Path, line: tuple[str, str, float], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [{"name": "echo", "file": "echo.onnx", "cases": ["io.npz"]}]
    (unsure / "INDEX.json").write_text(json.dumps(json.loads((unsure / "INDEX.json").read_text()) + others))
    (unsure / "zoo.toml").write_text(LINE.format(*line))
    arguments = ["zoo", "run", "--zoo", ".", "--baseline", "zoo.toml", "--junit", "zoo.xml"]
    assert run(*arguments) == (1 if problem else 0)
    printed = capsys.readouterr()
    assert problem in printed.err
    assert ("error:" in printed.err) is bool(problem)
    assert ("unsure: It cancels" in printed.out) is (line[0] == "unsure" and bool(printed.out))
    if line[0] == "unsure" and line[2] == 1e6:
        assert run(*arguments, "--unpin") == 1, "the line is for pinned shapes"
    if line[0] == "other":
        assert run(*arguments, "--model", "echo") == 0, "nothing is said of models that are not looked at"


def test_update_takes_out_what_is_not_so(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = LINE.format("echo", "uncertain", 2) + LINE.format("other", "different", 10)
    (zoo / "zoo.toml").write_text(lines)
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml", "--model", "echo") == 0
    assert (zoo / "zoo.toml").read_text().strip() == LINE.format("other", "different", 10).strip()
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    assert (zoo / "zoo.toml").read_text().strip() == ""
    assert capsys.readouterr().out.count("removed") == 2


@pytest.mark.parametrize(("tolerance", "code"), [(0.5, 0), (1e-9, 1)])
def test_zoo_holds_a_model_to_its_own_tolerance(
    unsure: Path, tolerance: float, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = json.loads((unsure / "INDEX.json").read_text())
    (unsure / "INDEX.json").write_text(json.dumps([entry | {"tolerance": tolerance, "reason": "it cancels"}]))
    assert run("zoo", "run", "--zoo", ".") == code
    printed = capsys.readouterr().out
    assert f"unsure: tolerance {tolerance:g}: it cancels" in printed
    assert "≈" not in printed
    assert ("1 of 1 model equals onnxruntime's" in printed) is (code == 0)


def test_a_wide_tolerance_needs_a_reason(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = json.loads((zoo / "INDEX.json").read_text())
    for tolerance, code in ((1e-5, 0), (1.1e-5, 1)):
        (zoo / "INDEX.json").write_text(json.dumps([entry | {"tolerance": tolerance}]))
        assert run("zoo", "run", "--zoo", ".") == code
    assert "the model echo has a tolerance of 1.1e-05 without a reason" in capsys.readouterr().err


def test_verify_says_that_onnxruntime_is_unsure(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz") == 0
    printed = capsys.readouterr().out
    assert "≈" in printed
    assert "y: onnxruntime's results with and without its optimizations differ by " in printed
    assert "0 of 1 output equals onnxruntime's; 1 is uncertain: it differs by less" in printed
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["equal"], told["outputs"][0]["verdict"]) == (True, False, "uncertain")
    assert told["outputs"][0]["doubt"] > told["outputs"][0]["allowed"]


def test_verify_says_what_to_do_about_what_is_not_equal(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    arguments = ("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz", "--tolerance", "1e-5")
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "✗" in printed
    assert "1 is not equal" in printed
    assert "help: verify a plan of `candlec compile --no-optimize`" in printed


DICE = (
    '<ir_version: 9, opset_import: ["": 20]> m (float[4] x) => (float[4] y) { y = RandomNormalLike <seed = 1.0> (x) }'
)


def test_verify_does_not_compare_random_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(DICE), "dice.onnx")
    assert run("verify", "dice.onnx") == 0
    printed = capsys.readouterr().out
    assert "y: random numbers differ between any two programs" in printed
    assert "0 of 1 output equals onnxruntime's; 1 is random, and only" in printed
    assert run("verify", "dice.onnx", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["verdict"] == "random"


def test_zoo_goes_on_after_a_model_that_onnxruntime_refuses(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("refused", "echo")
    (zoo / "INDEX.json").write_text(
        json.dumps([{"name": name, "file": f"{name}.onnx", "cases": ["io.npz"]} for name in files])
    )
    assert run("zoo", "run", "--zoo", ".", "--json") == 1
    outcomes = json.loads(capsys.readouterr().out)["outcomes"]
    assert [each["ok"] for each in outcomes] == [False] * 4 + [True] * 4
    assert "onnxruntime refuses the model" in outcomes[0]["remarks"][0]


def test_zoo_does_not_pass_without_cases(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (zoo / "INDEX.json").write_text(json.dumps([{"name": "echo", "file": "echo.onnx", "cases": []}]))
    assert run("zoo", "run", "--zoo", ".") == 1
    assert "the model echo has no cases" in capsys.readouterr().err


def test_zoo_without_an_index_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".") == 1
    assert "INDEX.json" in capsys.readouterr().err


def test_bench_times_both(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "--zoo", ".", "--threads", "1", "--seconds", "0.05", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    ratio = told["timings"][0]["ratios"]["onnxruntime"]
    assert ratio > 0
    assert told["geometric_mean"]["onnxruntime"]["1"] == pytest.approx(ratio)
    assert {"processor", "commit", "date"} <= told["machine"].keys()


QUICK = ("--threads", "1", "--seconds", "0.01", "--json")


@pytest.mark.parametrize(
    ("files", "beside"),
    [
        (["echo.plan"], [False]),
        (["echo.onnx"], [True]),
        (["echo.plan", "echo.onnx"], [True]),
        (["other.plan", "echo.plan", "echo.onnx"], [False, True]),
        (["echo.onnx", "--against", "nothing"], [False]),
        (["echo.plan", "echo.onnx", "--against", "onnxruntime"], [True]),
    ],
    ids=str,
)
def test_bench_times_plans_beside_their_models(
    files: list[str], beside: list[bool], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(MODEL.replace("echo", "other")), "other.onnx")
    run("compile", "echo.onnx")
    run("compile", "other.onnx")
    capsys.readouterr()
    assert run("bench", *files, *QUICK) == 0
    timings = json.loads(capsys.readouterr().out)["timings"]
    assert [each["model"] for each in timings] == [Path(each).stem for each in files[: len(beside)]]
    assert all(each["engines"]["plan"]["milliseconds"] > 0 for each in timings)
    assert ["onnxruntime" in each["ratios"] for each in timings] == beside
    assert run("bench", *files, *QUICK[:-1]) == 0
    assert ("onnxruntime" in capsys.readouterr().out) == any(beside)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["echo.plan", "--against", "onnxruntime"], "needs the model of echo.plan: name it too"),
        (["echo.plan", "old.onnx"], "none of these plans is of the model old.onnx"),
    ],
    ids=str,
)
def test_bench_refuses_to_guess_the_model(
    files: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    run("compile", "echo.onnx")
    assert run("bench", *files, *QUICK) == 2
    assert said in capsys.readouterr().err


def test_bench_goes_on_after_a_model_that_is_refused(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ("refused.onnx", "old.onnx", "echo.onnx")
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("bench", *models, *QUICK) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["refused"]["refused"]["diagnostics"][0]["code"] == "CC0201"
    old, echo = told["timings"]
    assert "onnxruntime refuses the model" in old["failed"]["onnxruntime"]
    assert [list(each["engines"]) for each in (old, echo)] == [["plan"], ["plan", "onnxruntime"]]


def test_bench_writes_its_tables_as_markdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("bench", "old.onnx", "echo.onnx", *QUICK[:-1], "--markdown", "table.md") == 0
    page = Path("table.md").read_text()
    assert page.startswith("# Times beside other runtimes\n\n`candlec")
    assert "| model | threads | plan | onnxruntime | ratio |\n|---|---:|---:|---:|---:|\n" in page
    assert "| – | – |\n" in page
    assert "- geometric mean of time ÷ onnxruntime, 1 thread, 1 model: " in page
    assert "- – old: onnxruntime refuses the model: " in page
    assert capsys.readouterr().out.count("onnxruntime refuses the model") == 1


def test_without_openvino_bench_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert run("bench", "echo.onnx", "--against", "openvino") == 1
    assert 'pip install "candle-compiler[bench]"' in capsys.readouterr().err


def test_without_onnxruntime_verify_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run("verify", "echo.onnx") == 1
    assert 'pip install "candle-compiler[check]"' in capsys.readouterr().err


def test_verify_of_what_onnxruntime_lacks_says_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("verify", "old.onnx") == 1
    printed = capsys.readouterr().err
    assert "error: onnxruntime refuses the model: " in printed
    assert "`candlec run PLAN --output FILE`" in printed


def test_compile_writes_a_report(folder: Path) -> None:
    assert run("compile", "echo.onnx", "--report", "report.html") == 0
    page = (folder / "report.html").read_text()
    assert "2 nodes became" in page
    assert "Identity" in page


def test_compile_help_lists_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    from compiler import Options
    from compiler.pipeline import passes

    assert run("compile", "--help") == 0
    lines = capsys.readouterr().out.partition("Optional passes, in order:\n")[2].splitlines()
    told = dict(line.split(maxsplit=1) for line in lines if line.startswith("  ") and line[2] != " ")
    assert list(told) == list(dict.fromkeys(step.name for step in passes(Options()) if not step.needed))
    assert told["drop_identities"].startswith("Drops Identity nodes")


def test_compile_runs_the_passes_that_are_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx", "--json", "--passes", "drop_identities") == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["passes"]]
    assert "drop_identities" in names
    assert "merge_duplicates" not in names
    assert run("compile", "echo.onnx", "--passes", "melt") == 2
    assert "there is no pass 'melt'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        ("1000000", 10**6),
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("512MiB", 512 << 20),
        ("1.5k", 1500),
        ("0", 0),
        ("8B", 8),
        ("1TiB", 1 << 40),
    ],
)
def test_a_bound_of_memory_is_written_into_the_plan(folder: Path, size: str, bytes_: int) -> None:
    assert run("compile", "echo.onnx", "--max-memory", size) == 0
    assert compiler.Plan.load("echo.plan").document["max_memory"] == bytes_


@pytest.mark.parametrize("size", ["", "GB", "-1", "1PB", "1e9", "two", "1000000TB", "inf", "1.GB"])
def test_a_bound_of_memory_is_a_size(folder: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "echo.plan", "--max-memory", size) == 2
    assert f"{size!r} is not a size below 10^18 bytes: write it as 2GB" in capsys.readouterr().err


def test_a_run_of_any_plan_can_be_bounded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx") == 0
    assert run("run", "echo.plan", "--input", "io.npz", "--max-memory", "1MB") == 0
    assert run("run", "echo.plan", "--input", "io.npz", "--max-memory", "8") == 1
    assert "max_memory leaves 8" in capsys.readouterr().err


FROZEN = """
<ir_version: 9, opset_import: ["": 20]>
frozen (float[batch, time] x) => (float[1, 4] y) <int64[2] s = {1, 4}> { y = Reshape (x, s) }
"""


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_sizes_that_were_made_up_are_doubted(folder: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(FROZEN), "frozen.onnx")
    assert run("compile", "frozen.onnx") == 0
    file = "frozen.plan" if verb == "run" else "frozen.onnx"
    assert run(verb, file) == 1
    assert (
        "help: the command chose random inputs and their sizes: --size batch=N sets another size"
        in capsys.readouterr().err
    )
    assert run(verb, file, "--size", "time=4") == 0
    capsys.readouterr()
    np.savez("five.npz", x=np.zeros((1, 5), np.float32))
    assert run(verb, file, "--input", "five.npz") == 1
    assert "random" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["compile", "echo.onnx", "-o", ""], 2, "the name of the file is empty"),
        (["run", "echo.plan", "--input", "x="], 2, "'x=' names no file"),
        (
            ["run", "echo.plan", "--size", "batch=999999999999999999"],
            2,
            "the random input 'x' of shape [999999999999999999, 3] would be",
        ),
        (["bench", "gone.onnx"], 1, "error: gone.onnx: No such file or directory"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", "echo.onnx") == 0
    assert run(*arguments) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["ops"], ["explain"], ["inspect", "echo.onnx"], ["check", "echo.onnx"]], ids=" ".join)
def test_data_say_whether_all_is_well(folder: Path, verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*verb, "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_a_summary_for_a_pipe_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["Neg", "Exp", "Sin", "Cos", "Tan", "Abs", "Erf", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Tanh", "Atan"]
    chain = "  ".join(f"v{i + 1} = {kind} (v{i})" for i, kind in enumerate(kinds))
    text = f'<ir_version: 9, opset_import: ["": 20]> m (float[n] v0) => (float[n] v{len(kinds)}) {{ {chain} }}'
    onnx.save(onnx.parser.parse_model(text), "chain.onnx")
    assert run("compile", "chain.onnx", "--no-optimize") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("nodes: ")]
    assert line.startswith("nodes: 14, steps: ") and line.endswith(")") and len(line) > 20
