"""`candlec compile`: the plan that it writes, its report, and the text that it prints about passes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import onnx
import onnx.parser
import pytest

import compiler
from compiler.accuracy.compare import Comparison, Report
from tests.cli.command import run
from tests.page.elements import data_in
from tests.running import SOON


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
    reader.join(SOON)
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


def test_compile_describes_passes_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = " ".join(f"v{index + 1} = {'Tanh' if index % 2 else 'Sin'}(v{index})" for index in range(30))
    text = f'<ir_version: 10, opset_import: ["": 20]> g (float[n] v0) => (float[n] v30) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), "long.onnx")
    assert run("compile", "long.onnx", "--passes", "drop_dead_nodes, fuse_elementwise") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)
    printed = {line.split()[0]: line.partition(" ms ")[2].strip() for line in lines if " ms " in line}
    assert printed == {"infer_shapes": "shapes inferred: 29", "fuse_elementwise": "steps fused: 2"}


def test_compile_tells_programs_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "echo.onnx", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    assert printed["bytes"] == (folder / "echo.plan").stat().st_size


def test_a_refused_model_leaves_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(folder.iterdir())
    assert run("compile", "refused.onnx", "-o", "refused.plan") == 1
    assert run("compile", "refused.onnx", "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["diagnostics"]) == 2
    assert set(folder.iterdir()) == before


def test_compile_writes_a_report(folder: Path) -> None:
    assert run("compile", "echo.onnx", "--report", "report.html") == 0
    page = (folder / "report.html").read_text()
    assert "2 nodes became" in page
    assert "Identity" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_a_report_may_measure_a_run_and_compare_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--profile", "--verify", "--input", "io.npz", "--json")
    assert run("compile", "echo.onnx", "--report", "report.html", *given) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] is True and {each["verdict"] for each in shown["outputs"]} == {"equal"}
    data = data_in(Path("report.html").read_text())
    assert data["profile"]["runs"] == 10 and data["verified"]["verdict"] == "equal"
    assert data["given"] == "the inputs of io.npz"
    assert run("compile", "echo.onnx", "--report", "report.html", "--verify", "--seed", "3") == 0
    assert "2 of 2 outputs equal onnxruntime's" in capsys.readouterr().out
    data = data_in(Path("report.html").read_text())
    assert data["profile"]["runs"] is None and data["given"].startswith("random inputs (seed 3): ")


def test_outputs_that_differ_are_exit_code_1(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Comparison("y", "float32", (2,), max_abs=1.0, allowed=1e-5)
    monkeypatch.setattr(compiler, "verify", lambda *_: Report((wrong,)))
    assert run("compile", "echo.onnx", "--report", "report.html", "--verify") == 1
    assert "0 of 1 output equals onnxruntime's; 1 is not equal" in capsys.readouterr().out
    assert Path("echo.plan").exists() and data_in(Path("report.html").read_text())["verified"]["verdict"] == "different"


def test_compile_help_lists_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    from compiler import Options
    from compiler.pipeline import passes

    assert run("compile", "--help") == 0
    lines = capsys.readouterr().out.partition("Optional passes, in order:\n")[2].splitlines()
    printed = dict(line.split(maxsplit=1) for line in lines if line.startswith("  ") and line[2] != " ")
    assert list(printed) == list(dict.fromkeys(step.name for step in passes(Options()) if not step.needed))
    assert printed["drop_identities"].startswith("Drops Identity nodes")


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


def test_a_summary_for_a_pipe_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["Neg", "Exp", "Sin", "Cos", "Tan", "Abs", "Erf", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Tanh", "Atan"]
    chain = "  ".join(f"v{i + 1} = {kind} (v{i})" for i, kind in enumerate(kinds))
    text = f'<ir_version: 9, opset_import: ["": 20]> m (float[n] v0) => (float[n] v{len(kinds)}) {{ {chain} }}'
    onnx.save(onnx.parser.parse_model(text), "chain.onnx")
    assert run("compile", "chain.onnx", "--no-optimize") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("nodes: ")]
    assert line.startswith("nodes: 14, steps: ") and line.endswith(")") and len(line) > 20


def test_a_limit_below_an_output_is_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "g (float[100, n] x) => (float[100, n] y) { y = Neg (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "wide.onnx")
    said = "warning: step 0, Unary, has an output of 40 kB, more than --max-memory: runs may fail\n"
    for arguments, expected in ((["--dim", "n=100"], said), ([], "")):
        assert run("compile", "wide.onnx", "--max-memory", "10KB", *arguments) == 0
        assert capsys.readouterr().err == expected
    assert run("compile", "wide.onnx", "--max-memory", "40KB", "--dim", "n=100") == 0
    assert capsys.readouterr().err == ""
