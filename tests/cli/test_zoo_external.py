"""A folder with a model whose weights are in a second file: every command on the folder reads both files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from tests.cli.command import run

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
block (float[batch, 4] x) => (float[batch, 3] y) { y = MatMul (x, w) }
"""


@pytest.fixture
def block(folder: Path) -> Path:
    """The folder of such a model, which is not the working folder."""
    place, random = folder / "models", np.random.default_rng(0)
    place.mkdir()
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.append(onnx.numpy_helper.from_array(random.random((4, 3), np.float32), "w"))
    onnx.save(model, place / "block.onnx", save_as_external_data=True, location="block.onnx.data", size_threshold=0)
    for count in (1, 2):
        np.savez(place / f"block.{count}.npz", x=random.random((count, 4), np.float32))
    cases = ["block.1.npz", "block.2.npz"]
    (place / "INDEX.json").write_text(json.dumps([{"name": "block", "file": "block.onnx", "cases": cases}]))
    return place


@pytest.mark.parametrize("way", [[], ["--unpin"]], ids=["pinned", "unpinned"])
def test_a_check_reads_the_weights(block: Path, way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--json", *way) == 0
    assert [each["verdict"] for each in json.loads(capsys.readouterr().out)["outcomes"]] == ["equal"] * 4


def test_an_update_reads_the_weights(block: Path) -> None:
    assert run("zoo", "update", "--facts", "zoo.facts.toml") == 0
    facts = Path("zoo.facts.toml").read_text()
    assert "\nconstants = 2\n" in facts  # of the plans for two shapes
    assert "\nconstants = 1\n" in facts and "refused" not in facts


def test_the_measurement_of_errors_reads_the_weights(block: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "precision", "--json") == 0
    assert json.loads(capsys.readouterr().out)["models"]["block"]["plan"] < 1e-6


def test_a_benchmark_reads_the_weights(block: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "--zoo", "models", "--seconds", "0.01", "--threads", "1", "--json") == 0
    assert [each["model"] for each in json.loads(capsys.readouterr().out)["timings"]] == ["block"]


def test_a_missing_file_of_weights_is_refused_with_advice(block: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block / "block.onnx.data").unlink()
    assert run("bench", "--zoo", "models", "--json") == 1
    [found] = json.loads(capsys.readouterr().out)["refused"]["block"]["diagnostics"]
    assert found["code"] == "CC0103" and found["help"].startswith("put it next to the model, as ")
