"""Wrong usage, files of a wrong kind, and the text that all commands print in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.cli import VERBS
from tests.cli.command import N, run


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
        ["bench", "echo.onnx", "--only", "echo"],
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
        ["run", "made.plan", "--input", "x.npy"],
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
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] is False and shown["error"]
    assert set(folder.iterdir()) == before


OVERWRITING = [
    (["compile", "echo.onnx", "-o", "echo.onnx"], "echo.onnx is an input"),
    (["compile", "echo.onnx", "-o", "link.onnx"], "link.onnx is an input"),
    (["compile", "echo.onnx", "-o", "inner/../echo.onnx"], "is an input"),
    (["compile", "model.plan"], "the model has the suffix of plans: name the plan with --output"),
    (["compile", "echo.onnx", "-o", "new.onnx"], "new.onnx has the suffix of models: name a .plan file"),
    (["compile", "echo.onnx", "--report", "a.txt"], "a.txt is no .html file, and the report is a web page"),
    (["compile", "echo.onnx", "-o", "a.plan", "--report", "a.plan"], "a.plan is the --output"),
    (["compile", "echo.onnx", "--report", "echo.plan"], "echo.plan is the --output"),
    (["compile", "echo.onnx", "--profile"], "--profile writes to the report: add --report FILE.html"),
    (["compile", "echo.onnx", "--verify"], "--verify writes to the report: add --report FILE.html"),
    (["diff", "echo.onnx", "echo.onnx", "--report", "a.txt"], "a.txt is no .html file, and the report is a web page"),
    (["diff", "echo.onnx", "echo.onnx", "--report", "echo.onnx"], "echo.onnx is an input"),
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


def test_json_has_no_nan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    np.savez("nan.npz", x=np.full((1, 3), np.nan, np.float32), n=N)
    capsys.readouterr()
    assert run("run", "echo.plan", "--input", "nan.npz", "--json") == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert shown["outputs"][0]["max"] is None


MISTAKEN = [
    (["run", "echo.onnx"], "echo.onnx is not a plan but looks like an ONNX model: compile it first"),
    (["verify", "echo.onnx", "echo.onnx"], "echo.onnx is not a plan but looks like an ONNX model"),
    (["run", "text.plan"], "text.plan: cannot read the plan: it is not a plan, but a file of another format"),
    (["inspect", "text.plan"], "text.plan: cannot read the plan: it is not a plan, but a file of another format"),
    (["compile", "echo.plan", "-o", "other.plan"], "echo.plan is a plan, not a model"),
    (["compile", "echo.plan"], "echo.plan is a plan, not a model\n  help: `candlec run` runs it"),
    (["inspect", "text.onnx"], "not an ONNX model"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKEN, ids=[" ".join(each) for each, _ in MISTAKEN])
def test_errors_name_a_file_of_a_wrong_kind(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("compile", "echo.onnx")
    for name in ("text.plan", "text.onnx"):
        Path(name).write_text("This is text.\n")
    capsys.readouterr()
    assert run(*arguments) == 1
    assert said in capsys.readouterr().err


FROZEN = """
<ir_version: 9, opset_import: ["": 20]>
frozen (float[batch, time] x) => (float[1, 4] y) <int64[2] s = {1, 4}> { y = Reshape (x, s) }
"""


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_errors_of_random_inputs_suggest_other_sizes(
    folder: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_errors_name_the_wrong_argument(
    folder: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", "echo.onnx") == 0
    assert run(*arguments) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["ops"], ["explain"], ["inspect", "echo.onnx"], ["check", "echo.onnx"]], ids=" ".join)
def test_data_say_whether_all_is_well(folder: Path, verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*verb, "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


@pytest.mark.parametrize("verb", [["run", "sequence.plan"], ["verify", "sequence.onnx"]], ids=" ".join)
def test_a_sequence_is_not_made_at_random(verb: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "g (seq(float[n]) s) => (seq(float[n]) t) { t = Identity (s) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "sequence.onnx")
    run("compile", "sequence.onnx")
    assert run(*verb) == 2
    assert "the input 's' is a sequence, which has no random value: give the inputs" in capsys.readouterr().err
    np.savez("s.npz", **{"s.0": np.zeros(2, np.float32)})
    assert run(*verb, "--input", "s.npz") == 0
