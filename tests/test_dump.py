"""The graphs after each pass in files, and passes that are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler.rewrite.dump import Dump
from tests.cli.command import run

DIGITS = Path(__file__).parents[1] / "models/digits.onnx"


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """The folder of the dumped graphs."""
    folder = tmp_path / "passes"
    assert run("compile", str(DIGITS), "-o", str(tmp_path / "d.plan"), "--dump-passes", str(folder)) == 0
    return folder


def test_each_pass_that_changed_the_graph_has_a_file(digits: Path) -> None:
    changed = []
    compiler.compile(DIGITS, compiler.Options(on_pass=lambda report: changed.append((report.name, report.changed))))
    expected = [f"{at:03}-{name}" for at, (name, is_changed) in enumerate(changed, 1) if is_changed or at == 1]
    assert sorted(path.stem for path in digits.glob("*.onnx")) == expected
    assert len(expected) > 10


def test_the_files_are_models_with_weights(digits: Path) -> None:
    first, *_, last = sorted(digits.glob("*.onnx"))
    assert {node.op_type for node in onnx.load(first).graph.node} >= {"Conv", "BatchNormalization"}
    fused = onnx.load(last)
    assert any(node.domain == "candle.plan" for node in fused.graph.node)
    assert "candle.plan" in {entry.domain for entry in fused.opset_import}
    sizes = {each.name: onnx.numpy_helper.to_array(each).nbytes for each in fused.graph.initializer}
    assert max(sizes.values()) > 10_000, "the weights are read from their files"
    files = list((digits / "weights").iterdir())
    assert sum(path.stat().st_size for path in files) < 3 * DIGITS.stat().st_size, "each weight is written once"


def test_a_dump_changes_no_plan(tmp_path: Path) -> None:
    dumped = compiler.compile(DIGITS, compiler.Options(on_model=Dump(tmp_path)))
    assert dumped.data == compiler.compile(DIGITS).data


def test_a_folder_with_files_is_refused(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(DIGITS), "-o", str(digits.parent / "d.plan"), "--dump-passes", str(digits)) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err


def test_a_pass_that_is_left_out_does_not_run(tmp_path: Path) -> None:
    ran: list[str] = []
    options = compiler.Options(skip_passes=["fuse_epilogues"], on_pass=lambda report: ran.append(report.name))
    plan = compiler.compile(DIGITS, options)
    assert "fuse_epilogues" not in ran and "fuse_elementwise" in ran
    assert "fuse_epilogues" not in plan.document["passes"]
    picture = {"picture": np.ones((1, 1, 8, 8), np.float32)}
    found, usual = (compiler.load(each, threads=1).run(picture)["logits"] for each in (plan, compiler.compile(DIGITS)))
    np.testing.assert_allclose(found, usual, rtol=1e-4, atol=1e-4)
    out = str(tmp_path / "d.plan")
    assert run("compile", str(DIGITS), "-o", out, "--skip-pass", "fuse_epilogues", "--skip-pass", "fold_pads") == 0
    assert {"fuse_epilogues", "fold_pads"}.isdisjoint(compiler.Plan.load(out).document["passes"])


def test_unknown_and_needed_passes_cannot_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(compiler.CompileError) as caught:
        compiler.compile(DIGITS, compiler.Options(skip_passes=["fuse_epilog", "infer_shapes"]))
    assert [each.code for each in caught.value.diagnostics] == ["CC0503", "CC0503"]
    assert "fuse_epilogues" in str(caught.value) and "the pass infer_shapes cannot be left out" in str(caught.value)
    assert run("compile", str(DIGITS), "--skip-pass", "infer_shapes") == 2
    assert "infer_shapes always runs: leave it out" in capsys.readouterr().err
    with pytest.raises(TypeError, match=r"Options\.skip_passes"):
        compiler.Options(skip_passes="fuse_epilogues")
