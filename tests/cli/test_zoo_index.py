"""`candlec zoo` with an index, with a baseline, and with models that it cannot compare."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.command import run

MODELS = {
    "sound": "(float[2] x) => (float[2] y) { y = Neg (x) }",
    "odd": "(float[2] x) => (float[2] y) { y = private.Melt (x) }",
    "volume": "(float[1, 1, 2, 2, 2] x, float[1, 1, 1, 1, 1] w) => (y) { y = Conv (x, w) }",
}
CASES = {
    "sound": {"x": np.ones(2, np.float32)},
    "odd": {"x": np.ones(2, np.float32)},
    "volume": {"x": np.ones((1, 1, 2, 2, 2), np.float32), "w": np.ones((1, 1, 1, 1, 1), np.float32)},
    "wide": {"x": np.ones(3, np.float64)},
    "long": {"x": np.ones((1, 3), np.float32)},
    "empty": {},
}
REFUSED = """\
[volume]
reason = "Refused: 3-D convolution is not supported (kernel 1×1×1) (CC0301)"
pinned = {refused = ["CC0301"]}
unpinned = {refused = ["CC0301"]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with models and cases."""
    monkeypatch.chdir(tmp_path)
    for name, graph in MODELS.items():
        text = f'<ir_version: 9, opset_import: ["": 20, "private": 1]> m {graph}'
        onnx.save(onnx.parser.parse_model(text), f"{name}.onnx")
    for name, arrays in CASES.items():
        np.savez(f"{name}.npz", **arrays)
    Path("text.npz").write_text("no archive")
    return tmp_path


def zoo(verb: str, index: Any, *options: str) -> int:
    """The exit code of a verb on a folder of this index."""
    Path("INDEX.json").write_text(index if isinstance(index, str) else json.dumps(index))
    return run("zoo", verb, "--zoo", ".", *options)


def entry(name: str, case: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "file": f"{name}.onnx", "cases": [f"{case or name}.npz"], **more}


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ("[", "INDEX.json is not a valid index of models: Expecting value"),
        ([], "INDEX.json is not a valid index of models: it lists no models"),
        ({}, "INDEX.json is not a valid index of models: it lists no models"),
        ({"name": "sound"}, "expected a list with one object for each model"),
        (["sound"], "a model must be an object, not 'sound'"),
        ([{"file": "sound.onnx"}], "a model has no name"),
        ([{"name": 3}], "a name must be a string, not 3"),
        ([{"name": "sound", "file": "sound.onnx"}], "the model sound has no cases"),
        ([{"name": "sound", "cases": ["sound.npz"]}], "the model sound has no file"),
        ([entry("sound") | {"cases": "sound.npz"}], "the model sound has the cases 'sound.npz', not a list of files"),
        ([entry("sound") | {"file": ["sound.onnx"]}], "the model sound has the file ['sound.onnx'], not a string"),
        ([entry("sound", tolerence=1e-9)], "the model sound has 'tolerence': did you mean tolerance?"),
        ([entry("sound", tolerance=-1)], "the model sound has the tolerance -1, not a number above 0"),
        ([entry("sound", tolerance=0)], "the model sound has the tolerance 0, not a number above 0"),
        ([entry("sound", tolerance="1e-4")], "the model sound has the tolerance '1e-4', not a number above 0"),
        ([entry("sound", tolerance=float("nan"))], "the model sound has the tolerance nan, not a number above 0"),
        ([entry("sound"), entry("sound")], "2 models have the name sound"),
    ],
)
def test_an_index_is_sound_or_refused(index: Any, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo("run", index) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and shown.count("\n") == 1
    assert problem in shown


def test_an_index_may_tell_people_more() -> None:
    about = {"source": "here", "what": "negates", "license": "MIT", "size": 1, "opsets": {}, "inputs": [], "ops": []}
    assert zoo("run", [entry("sound", **about)]) == 0


FAULTS = [
    (entry("gone", "sound"), "it cannot be checked: there is no file gone.onnx"),
    (entry("sound", "gone"), "it cannot be checked: there is no file gone.npz"),
    (entry("sound", "text"), "it cannot be checked: cannot read text.npz as an .npz file"),
    (entry("sound", "wide"), "it cannot be checked: "),
    (entry("sound", "long"), "it cannot be checked: "),
    (entry("sound", "empty"), "it cannot be checked: "),
    (entry("odd"), "it cannot be checked: onnxruntime refuses the model"),
]


@pytest.mark.parametrize(("model", "problem"), FAULTS)
def test_what_cannot_be_checked_is_never_known(
    model: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert zoo("update", [model, entry("volume")], "--baseline", "zoo.toml") == 1
    assert f"error: {model['name']}: {problem}" in capsys.readouterr().err
    assert Path("zoo.toml").read_text() == REFUSED, "what can be said of the others is"
    line = 'pinned = { verdict = "different", at_most = 1e9 }'
    Path("zoo.toml").write_text(f'[{model["name"]}]\nreason = "It is odd"\n{line}\n')
    before = Path("zoo.toml").read_text()
    assert zoo("update", [model], "--baseline", "zoo.toml", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["changes"], list(shown["failed"])) == (False, {}, [model["name"]])
    assert Path("zoo.toml").read_text() == before, "what was known stays"
    assert zoo("run", [model], "--baseline", "zoo.toml") == 1
    assert f"error: {model['name']}: {problem}" in capsys.readouterr().err


def test_a_refusal_is_known_by_its_codes(capsys: pytest.CaptureFixture[str]) -> None:
    index = [entry("volume")]
    assert zoo("run", index) == 1
    printed = capsys.readouterr()
    assert "error: volume: it is refused (CC0301)" in printed.err
    assert "0 of 1 model equals onnxruntime's; 1 is refused" in printed.out
    assert zoo("update", index, "--baseline", "zoo.toml") == 0
    assert Path("zoo.toml").read_text() == REFUSED
    assert capsys.readouterr().out.startswith("volume: new: pinned refused (CC0301); unpinned refused (CC0301)\n")
    for way in ([], ["--unpin"]):
        assert zoo("run", index, "--baseline", "zoo.toml", *way) == 0
    assert zoo("update", index, "--baseline", "zoo.toml") == 0
    assert Path("zoo.toml").read_text() == REFUSED


@pytest.mark.parametrize(
    ("index", "codes", "problem"),
    [
        (entry("volume"), "CC0205", "it is refused (CC0301), but refused (CC0205) in the baseline"),
        (entry("sound"), "CC0301", "it is now equal in every variant, but refused (CC0301) in the baseline"),
    ],
)
def test_a_refusal_has_to_be_so(
    index: dict[str, Any], codes: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("zoo.toml").write_text(REFUSED.replace("volume", index["name"]).replace('["CC0301"]', f'["{codes}"]'))
    assert zoo("run", [index], "--baseline", "zoo.toml") == 1
    assert f"error: {index['name']}: {problem}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('pinned = { verdict = "different", at_most = 2 }', "the model sound has no reason"),
        ('reason = ""', "the model sound has no reason"),
        ('reason = "so"\nshapes = 1', "the model sound has shapes: use only reason, pinned, unpinned"),
        ('reason = "so"\npinned = 1', "sound: pinned: expected verdict and at_most, or refused; found 1"),
        (
            'reason = "so"\npinned = { verdict = "different" }',
            "sound: pinned: expected verdict and at_most, or refused",
        ),
        (
            'reason = "so"\npinned = { verdict = "different", at_most = inf }',
            "at_most must be a number above 1, not inf",
        ),
        ('reason = "so"\npinned = { refused = [] }', "sound: pinned: refused must be a list of codes, not []"),
        ('reason = "so"\npinned = { refused = "CC0301" }', "refused must be a list of codes, not 'CC0301'"),
    ],
)
def test_a_baseline_is_sound_or_refused(lines: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zoo.toml").write_text(f"[sound]\n{lines}\n")
    assert zoo("run", [entry("sound")], "--baseline", "zoo.toml") == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: zoo.toml is not a baseline: ") and problem in shown


def test_a_log_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo("run", [entry("sound"), entry("volume")], "--json") == 1
    shown = capsys.readouterr().err.splitlines()
    assert sorted(re.sub(r"[0-9.]+ s \([12] of 2.*\)$", "", line) for line in shown) == [
        "sound, pinned: equal, ",
        "volume, pinned: refused (CC0301), ",
    ]
