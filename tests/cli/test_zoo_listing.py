"""`candlec zoo index`: the index of a folder of ONNX files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.command import run

KINDS = """
<ir_version: 9, opset_import: ["": 20]>
kinds (float[n, 3, w] x, int64[2] i, string[n] s, bool b) => (float[n, 3, w] y, string[n] t) {
    y = Identity (x)  t = Identity (s)  j = Identity (i)  c = Identity (b)
}
"""
SEQUENCE = '<ir_version: 9, opset_import: ["": 20]> s (seq(float[2]) x) => (int64 y) { y = SequenceLength (x) }'
NARROW = '<ir_version: 9, opset_import: ["": 20]> s (bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }'


def index(folder: str = "zoo") -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((Path(folder) / "INDEX.json").read_text())
    return found


@pytest.fixture
def zoo(folder: Path) -> Path:
    """A working folder with a folder of two models."""
    Path("zoo/more").mkdir(parents=True)
    onnx.save(onnx.parser.parse_model(KINDS), "zoo/kinds.onnx")
    Path("echo.onnx").rename("zoo/more/echo.onnx")
    return folder


def test_each_file_is_a_model_with_random_inputs(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "index", "--zoo", "zoo", "--size", "w=4") == 0
    assert capsys.readouterr().out == "zoo/INDEX.json: 2 new models, 2 in all\n"
    assert index() == [
        {"name": "kinds", "file": "kinds.onnx", "cases": ["kinds.npz"]},
        {"name": "more/echo", "file": "more/echo.onnx", "cases": ["more/echo.npz"]},
    ]
    with np.load("zoo/kinds.npz") as arrays:
        assert {name: (each.shape, each.dtype.kind) for name, each in arrays.items()} == {
            "x": ((1, 3, 4), "f"),
            "i": ((2,), "i"),
            "s": ((1,), "U"),
            "b": ((), "b"),
        }
    before = Path("zoo/kinds.npz").read_bytes()
    assert run("zoo", "run", "--zoo", "zoo", "--jobs", "1") == 0
    Path("zoo/INDEX.json").unlink()
    assert run("zoo", "index", "--zoo", "zoo") == 0
    assert Path("zoo/kinds.npz").read_bytes() == before, "a file of inputs stays"


def test_only_new_files_are_added(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"name": "mine", "file": "kinds.onnx", "cases": ["mine.npz"], "tags": ["own"]}
    Path("zoo/INDEX.json").write_text(json.dumps([own]))
    assert run("zoo", "index", "--zoo", "zoo", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"ok": True, "known": 1, "added": ["more/echo"], "failed": {}}
    assert index()[0] == own and len(index()) == 2
    written = Path("zoo/INDEX.json").read_bytes()
    assert run("zoo", "index", "--zoo", "zoo") == 0
    assert Path("zoo/INDEX.json").read_bytes() == written


def test_a_model_that_cannot_be_added_is_named(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zoo/broken.onnx").write_text("odd")
    onnx.save(onnx.parser.parse_model(SEQUENCE), "zoo/sequence.onnx")
    onnx.save(onnx.parser.parse_model(NARROW), "zoo/narrow.onnx")
    Path("zoo/INDEX.json").write_text(
        json.dumps([{"name": "kinds", "file": "more/echo.onnx", "cases": ["more/echo.npz"]}])
    )
    assert run("zoo", "index", "--zoo", "zoo") == 1
    printed = capsys.readouterr().err
    assert (
        "error: broken: " in printed
        and "(CC0101)\n" in printed
        and "error[" not in printed
        and "error: kinds: the index has another model" in printed
    )
    assert "error: sequence: the input 'x' is no tensor: write its case, and list the model yourself" in printed
    assert "error: narrow: an .npz file cannot hold the input 'x' of bfloat16" in printed
    assert len(index()) == 1 and not Path("zoo/kinds.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--zoo", "missing"], "missing is no folder"),
        (["--zoo", "empty"], "empty has no files with names that end with .onnx"),
        (["--zoo", "zoo", "--size", "k=2"], "no new model has a symbolic dimension 'k'"),
    ],
)
def test_nothing_is_written_after_an_error(
    arguments: list[str], said: str, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    before = set(zoo.rglob("*"))
    assert run("zoo", "index", *arguments) == 1
    assert said in capsys.readouterr().err
    assert set(zoo.rglob("*")) == before
