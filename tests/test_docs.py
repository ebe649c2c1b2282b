"""The pages of the documentation: links lead to pages, programs run, and commands print what a page shows."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest
from safetensors.numpy import save_file

import compiler
from compiler import cli
from tests.generation.tiny import likeliest, write_decoder
from tests.gguf_files import gguf, plain
from tests.state.models import model_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = {
    "compiler/contrib/hypot.py",
    "compiler/passes/fuse_negation.py",
    "compiler/lower/hypot.py",
    "runtime/plan/src/cpu/hypot.rs",
    "runtime/plan/src/ops/hypot.rs",
    "tests/lower/test_hypot.py",
    "tests/passes/test_fuse_negation.py",
}
"""Files that the pages on adding something let the reader write."""


def block(page: str, opening: str) -> str:
    """The first block of code of `page` whose text begins with `opening`."""
    found = re.search(rf"```\w*\n({re.escape(opening)}.*?)```", page, re.DOTALL)
    assert found is not None, f"no block begins with {opening!r}"
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files of a clone after a build."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = {link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link}
    assert not [link for link in links if not (page.parent / link).exists()]
    paths = set(re.findall(r"`((?:compiler|runtime|docs|tests|models|tools|benchmarks)/[\w./-]*)`", text)) - EXAMPLES
    built = {path for path in paths if path.endswith(".so")}
    assert not [path for path in paths - built if not (ROOT / path).exists()]


def test_the_commands_of_the_readme_run(folder: Path) -> None:
    commands = block(README, ". .venv/bin/activate").splitlines()[1:]
    assert [command.split()[:2] for command in commands] == [["candlec", verb] for verb in ("compile", "run", "verify")]
    for command in commands:
        assert run(*shlex.split(command)[1:]) == 0, command
    with np.load("outputs.npz") as outputs:
        assert outputs["logits"].shape == (8, 10)


def test_the_program_of_the_readme_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(block(README, "import numpy as np"), {})
    assert capsys.readouterr().out.startswith("[[")


def test_the_refusal_of_the_readme_is_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, expected = block(README, "$ candlec check").partition("\n")
    assert run(*shlex.split(command)[2:]) == 1
    assert capsys.readouterr().err.startswith(expected)


def test_the_table_of_the_readme_has_every_verb() -> None:
    assert set(re.findall(r"`candlec (\w+)", README)) >= set(cli.VERBS)


def test_the_table_of_the_readme_has_every_extra() -> None:
    extras = re.search(
        r"\[project.optional-dependencies\]\n(.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL
    )
    assert extras is not None
    declared = re.findall(r"^(\w+) = \[", extras[1], re.MULTILINE)
    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == declared


def test_the_commands_for_pages_run(folder: Path) -> None:
    page = (ROOT / "docs/reports.md").read_text()
    commands = [line.removeprefix("$ candlec ") for line in page.splitlines() if line.startswith("$ ")]
    codes = [run(*shlex.split(command)) for command in commands]
    assert codes == [0, 0, 0, 1], "the last one finds differences"
    assert {path.name for path in folder.glob("*.html")} == {"digits.html", "difference.html"}


def test_the_commands_for_the_times_of_a_folder_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/performance.md").read_text()
    quick = ["--threads", "1", "--seconds", "0.01", "--against", "nothing"]
    commands = [shlex.split(line)[1:] for line in block(page, "candlec bench --zoo models --timeout").splitlines()]
    assert [run(*command, *quick) for command in commands] == [0, 0, 0]
    assert capsys.readouterr().err.count("digits, bench: timed, ") == 2, "one of them resumes"


def test_the_program_for_sessions_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/using-from-python.md").read_text()
    exec(block(page, "import asyncio"), {})
    exec(block(page.partition("## Kinds of errors")[2], "import compiler"), {})
    shapes, names, classes, passed, canceled, wrong, count = capsys.readouterr().out.splitlines()
    assert shapes.startswith("{'logits': (1, 10)") and names == "['logits']"
    assert re.fullmatch(r"\[[0-9]\]", classes) and (passed, count) == ("(1, 10)", "2")
    assert (canceled, wrong) == ("canceled (1, 10)", "copy: expected True or False, found str")


def test_the_program_for_many_rows_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    page = (ROOT / "docs/batch.md").read_text()
    exec(block(page, "import numpy as np"), {})
    assert capsys.readouterr().out.splitlines()[:5] == [
        "100 rows, 0 of them from an earlier run",
        "part-000000.parquet: the first 100 rows",
        "100 99 1 True",
        "['source_file', 'source_row', 'logits'] 10",
        '{"file": "pictures.parquet", "row": 99, '
        '"reason": "\'pixels\' has 63 elements, and a row of the input is float32 [1, 8, 8]"}',
    ]
    compiler.compile("models/digits.onnx").save("digits.plan")
    shutil.rmtree("results")
    for command in block(page, "candlec batch").splitlines():
        assert run(*shlex.split(command)[1:]) == 0, command
    assert capsys.readouterr().out.splitlines()[1].endswith("(100 rows from an earlier run): results")
    images = pytest.importorskip("PIL.Image", reason="needs Pillow")
    Path("photos/cats").mkdir(parents=True)
    images.fromarray(np.full((8, 8), 9, np.uint8)).save("photos/cats/one.png")
    more = block(page.partition("## Other options")[2], "candlec batch").replace("\\\n", " ")
    for command in more.splitlines():
        assert run(*shlex.split(command)[1:]) == 0, command
    assert {each.name for each in Path("logits").glob("*.npz")} == {"part-000000.npz", "part-000001.npz"}


def test_the_program_for_a_precision_runs(folder: Path) -> None:
    page = (ROOT / "docs/precision-modes.md").read_text()
    found: dict[str, Any] = {}
    exec(block(page, "import compiler"), found)
    steps = found["plan"].document["main"]["steps"]
    assert "RoundedMatMul" in {next(iter(step["op"])) for step in steps}


def test_the_program_for_a_choice_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/precision-modes.md").read_text().partition("## The choice")[2]
    exec(block(page, "import compiler"), {})
    assert re.fullmatch(r"0\.\d\d% \[.*\]\n", capsys.readouterr().out)


def test_the_program_for_states_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/using-from-python.md").read_text().partition("## States")[2]
    exec(block(page, "import numpy as np"), {})
    assert capsys.readouterr().out.splitlines() == [
        "[StateInfo(output='present_x', input='past_x', axis=0)]",
        "{'y': (1, 4)} 4 64",
        "3 (4, 4)",
        "4",
        "2",
    ]
    write_decoder(folder / "decoder.onnx")
    commands = block(page, "candlec compile decoder.onnx").splitlines()
    assert [run(*shlex.split(command)[1:]) for command in commands] == [0] * 4


def test_the_command_and_the_program_for_volumes_make_the_same_plan(folder: Path) -> None:
    page = (ROOT / "docs/volumes.md").read_text()
    assert run(*shlex.split(block(page, "candlec compile"))[1:]) == 0
    made: dict[str, compiler.Plan] = {}
    exec(block(page, "import compiler"), made)
    assert made["plan"].data == Path("digits_3d.plan").read_bytes()


def test_the_program_for_weights_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/weights.md").read_text()
    exec(block(page, "import numpy as np"), {})
    assert capsys.readouterr().out.splitlines() == [
        "{'weight': 'float32 [3, 4]', 'bias': 'float32 [3]'}",
        "(3, 4)",
        "[[4. 5. 6.]]",
        "[[0. 0. 0.]]",
        "the weights cannot be used:",
        '  "weights": the plan has no such weight. Similar names: "weight". If the model has it: compile the model '
        "with Options(keep_weights=True), or candlec compile --keep-weights",
    ]
    shutil.copy("models/digits.onnx", "model.onnx")
    save_file({"classify.bias": np.zeros(10, np.float32)}, "tuned.safetensors")
    decoder = onnx.load(write_decoder(Path("decoder.onnx")))
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in decoder.graph.initializer}
    Path("decoder.gguf").write_bytes(gguf({name: plain(array) for name, array in arrays.items() if array.ndim == 2}))
    exec(block(page, "import compiler\n\nplan"), {})
    for command in re.findall(r"^candlec .*$", page, re.MULTILINE):
        assert run(*shlex.split(command)[1:]) == 0, command
    assert block(page, "//! Runs a plan with other") == (ROOT / "runtime/plan/examples/weights.rs").read_text()


def test_the_program_for_custom_operators_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compiler.custom._REGISTERED", {})
    monkeypatch.setattr("compiler.custom_modules._IMPORTED", {})
    page = (ROOT / "docs/custom-operators.md").read_text()
    program = block(page, "import numpy as np")
    made: dict[str, Any] = {}
    exec(program, made)
    assert capsys.readouterr().out.splitlines() == [
        "['example::GrowBoxes']",
        "[[0.0, 0.0, 1.5, 1.5], [1.75, 1.75, 2.75, 2.75]] [0]",
    ]
    Path("my_operators.py").write_text(program.partition("text = ")[0])
    Path("model.onnx").write_bytes(onnx.parser.parse_model(made["text"]).SerializeToString())
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for command in re.findall(r"^candlec .*$", page, re.MULTILINE):
        assert run(*shlex.split(command)[1:]) == 0, command
    assert block(page, "//! Runs a plan with a custom") == (ROOT / "runtime/plan/examples/custom.rs").read_text()


def test_the_program_for_texts_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_decoder(folder / "decoder.onnx")
    exec(block((ROOT / "docs/generation.md").read_text(), "import numpy as np"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{token} {length}" for length, token in enumerate(likeliest(8), start=2)]


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_the_programs_for_gpus_run(folder: Path, capsys: pytest.CaptureFixture[str], device: str) -> None:
    """They run on a GPU that the CPU emulates, and on the CPU."""
    if device == "emulator":
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    page = (ROOT / "docs/cuda.md").read_text()
    model = model_of(
        "(float[2] x) => (float[n] y, int64[1] s) { a = Exp (x) y = Unique <sorted = 1> (a) s = Shape (y) }"
    )
    compiler.compile(model).save("model.plan")
    exec(block(page, "import compiler").replace('"auto"', f'"{device}"'), {})
    placed, *hosted = capsys.readouterr().out.splitlines()
    assert placed == f"{device} 3"
    assert [line.split()[0] for line in hosted] == (["Unique", "Shape"] if device == "emulator" else [])
    write_decoder(folder / "decoder.onnx")
    program = block(page, "import numpy as np\nimport torch").replace('"cuda"', f'"{device}"')
    if device == "emulator":  # PyTorch knows no such device
        program = "".join(line for line in program.splitlines(keepends=True) if "torch" not in line)
    else:
        pytest.importorskip("torch", reason="needs PyTorch")
    exec(program, {})
    assert set(capsys.readouterr().out.splitlines()) == {"(1, 1, 10)", "torch.Size([1, 1, 10])"} - (
        {"torch.Size([1, 1, 10])"} if device == "emulator" else set()
    )


def test_the_program_written_for_onnxruntime_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/using-from-python.md").read_text().partition("## A program written for onnxruntime")[2]
    exec(block(page, "import numpy as np"), {})
    picture, shape, kind, error = capsys.readouterr().out.splitlines()
    assert picture == "NodeArg(name='picture', type='tensor(float)', shape=['batch', 1, 8, 8])"
    assert (shape, kind) == ("(1, 10)", "tensor(float)")
    assert error.startswith("[compiler.ort] : 2 : INVALID_ARGUMENT : input 'picture': expected float32")


def test_the_programs_for_torch_compile_run(
    folder: Path, capsys: pytest.CaptureFixture[str], quick_exports: None
) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    torch._dynamo.reset()
    page = (ROOT / "docs/torch-compile.md").read_text()
    exec(block(page, "import warnings"), {})
    assert capsys.readouterr().out.splitlines() == ["True"] * 4 + [
        "torch.Size([7, 10])",
        "CC0301",
        "FallbackWarning",
        "RefusedGraph",
    ]
    exec(block(page, "import onnx_ir"), {})
    assert capsys.readouterr().out.splitlines() == ["torch.Size([5, 2])", "(6, 2)", "picture", "float32 [batch, 3]"]


def test_the_programs_and_commands_for_exports_run(
    folder: Path, capsys: pytest.CaptureFixture[str], quick_exports: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    page = (ROOT / "docs/exporting.md").read_text()
    exec(block(page, "import warnings"), {})
    inputs, reason, count = capsys.readouterr().out.splitlines()
    assert inputs == "float32 [rows, 3] float32 [rows, 3]"
    assert reason == "Scaled | a branch in the code depends on the value of a tensor"
    assert count == "1"
    exec(block(page, "import torch\nfrom onnxscript"), {})
    assert capsys.readouterr().out == "[0.355 0.355 0.355]\n"
    Path("nets.py").write_text(block(page, "import torch\n\n\ndef build"))
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setitem(sys.modules, "nets", sys)  # after the test, no module has this name
    del sys.modules["nets"]
    commands = re.findall(r"^candlec .*$", page, re.MULTILINE)
    assert [run(*shlex.split(command, comments=True)[1:]) for command in commands] == [0] * 5
    assert {each.name for each in folder.iterdir()} >= {"nets.plan", "nets.onnx"}
    Path("pool.py").write_text(block(page, "import torch, compiler"))
    exec(compile(block(page, "import torch, compiler"), "pool.py", "exec"), {})
    assert block(page, "pool.onnx does not compute").splitlines()[0] in capsys.readouterr().out


def test_the_rust_program_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs/using-from-rust.md").read_text()
    assert block(page, "//! Runs a plan on") == (ROOT / "runtime/plan/examples/run.rs").read_text()
    assert block(page, "//! A plan as a layer") == (ROOT / "runtime/plan/examples/module.rs").read_text()
    assert block(page, "//! Runs a plan again") == (ROOT / "runtime/plan/examples/state.rs").read_text()


@pytest.mark.parametrize("name", ["errors", "onnxruntime", "operators"])
def test_generated_pages_are_current(name: str) -> None:
    made = runpy.run_path(str(ROOT / "tools/pages.py"))[name]()
    assert (ROOT / f"docs/{name}.md").read_text() == made, "run `make generate`"
