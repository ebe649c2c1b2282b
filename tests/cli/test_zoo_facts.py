"""`candlec zoo` with a file of facts: `update` writes it, and `run` fails if a fact has changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.processes.child import Channel
from compiler.zoo import tasks
from compiler.zoo.outcome import Outcome, variants
from compiler.zoo.task_arguments import Check
from tests.cli.command import run

CONVS = """
<ir_version: 10, opset_import: ["": 21]>
convs (float[1, 8, 12, 12] x, float[8, 8, 3, 3] v) => (float[1, 8, 12, 12] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, v)
    b = Relu (a)
    w = ConstantOfShape <value = float[1] {0.125}> (shape)
    y = Conv <pads = [1, 1, 1, 1]> (b, w)
}
"""
FACTS = "zoo.facts.toml"
CHECK = ["zoo", "run", "--zoo", ".", "--facts", FACTS]
UPDATE = ["zoo", "update", "--zoo", ".", "--facts", FACTS]
HELP = "  help: if these changes are right, record them: `candlec zoo update --zoo . --facts zoo.facts.toml{}`\n"


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two models."""
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    model = onnx.parser.parse_model(CONVS)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([8, 8, 3, 3]), "shape"))
    onnx.save(model, "convs.onnx")
    generator = np.random.default_rng(0)
    shapes = {"x": (1, 8, 12, 12), "v": (8, 8, 3, 3)}
    np.savez("convs.npz", **{name: generator.random(shape, np.float32) for name, shape in shapes.items()})
    write_index("echo", "convs")
    return folder


def write_index(*names: str) -> None:
    cases = {"convs": ["convs.npz"]}
    entries = [{"name": name, "file": f"{name}.onnx", "cases": cases.get(name, ["io.npz"])} for name in names]
    Path("INDEX.json").write_text(json.dumps(entries))


def change(old: str, new: str) -> None:
    """Replace one passage of the file of facts; it has to be there."""
    text = Path(FACTS).read_text()
    assert old in text
    Path(FACTS).write_text(text.replace(old, new, 1))


def table(name: str) -> list[str]:
    """The lines of a table in the file of facts."""
    _, _, rest = Path(FACTS).read_text().partition(f"[model.{name}]\n")
    return rest.partition("\n\n")[0].splitlines()


def test_update_writes_facts_that_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*UPDATE) == 0
    printed = capsys.readouterr().out
    assert "echo, pinned: facts: none → equal\n" in printed
    assert printed.endswith(f"{FACTS}: the facts of 2 models (scalar)\n")
    written = Path(FACTS).read_text()
    assert written.index("[model.convs.pinned]") < written.index("[model.echo.pinned]"), "the tables are sorted"
    convs = table("convs.pinned")
    levels = [line for line in convs if line.startswith("level.")]
    rest = convs[1 : -len(levels)]
    assert convs == ['status = "equal"', *sorted(rest), *sorted(levels)]
    assert "constant_bytes = 2304" in convs, "the weights of the second convolution"
    assert "steps = {Conv = 2}" in convs
    assert f"operations = {2 * 2 * 8 * 8 * 9 * 12 * 12}" in convs
    assert 'rewrites.fuse_epilogues = {"fuse Conv + Relu" = 1}' in convs
    assert any(re.fullmatch(r'level\.scalar\.forms\.Conv = \{.*" = 1\}', line) for line in convs)
    assert any(re.fullmatch(r"level\.scalar\.peak_bytes = [1-9][0-9]+", line) for line in convs)
    for way in ([], ["--unpin"]):
        assert run(*CHECK, *way) == 0
    assert "error" not in capsys.readouterr().err
    assert run(*UPDATE) == 0
    assert Path(FACTS).read_text() == written, "equal facts give equal bytes"
    assert capsys.readouterr().out == f"{FACTS}: the facts of 2 models (scalar)\n"


CHANGES = [
    ('status = "equal"', 'status = "different"', "status: different → equal"),
    ("constant_bytes = 2304", "constant_bytes = 1234567", "constant_bytes: 1,234,567 → 2,304"),
    ("constants = 1\n", "", "constants: none → 1"),
    ("steps = {Conv = 2}", "steps = {Conv = 1, Relu = 1}", "steps: Conv 1 → 2; Relu 1 → 0"),
    ("level.scalar.packed", "level.scalar.forms.Odd = {a = 1}\nlevel.scalar.packed", "scalar.forms.Odd: a 1 → 0"),
]


def test_changed_facts_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*UPDATE) == 0
    for old, new, _ in CHANGES:
        change(old, new)
    capsys.readouterr()
    assert run(*CHECK, "--junit", "zoo.xml") == 1
    printed = capsys.readouterr().err
    expected = [f"error: convs, pinned: {said}" for *_, said in CHANGES]
    assert [line for line in printed.splitlines() if line.startswith("error")] == expected
    assert printed.endswith(HELP.format(" --only convs"))
    report = Path("zoo.xml").read_text()
    assert 'classname="convs" name="facts"><failure message="pinned: status: different → equal&#10;pinned: ' in report
    assert 'failures="1"' in report
    assert run(*CHECK, "--unpin") == 0, "the facts of unpinned shapes have not changed"
    assert run(*UPDATE) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "→" in line] == [
        line.removeprefix("error: ") for line in expected
    ]
    assert run(*CHECK) == 0


def test_another_form_of_a_kernel_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*UPDATE) == 0
    line = next(line for line in table("convs.pinned") if line.startswith("level.scalar.forms.Conv"))
    form = re.findall('"(.*?)"', line)[0]
    change(line, line.replace(form, "direct, by hand"))
    capsys.readouterr()
    assert run(*CHECK, "--json") == 1
    [drift] = json.loads(capsys.readouterr().out)["drifts"]
    assert (drift["model"], drift["shapes"], drift["fact"]) == ("convs", "pinned", "scalar.forms.Conv")
    assert drift["before"]["direct, by hand"] == drift["after"][form]


def test_the_file_lists_the_models_of_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    write_index("convs")
    assert run(*UPDATE) == 0
    write_index("convs", "echo")
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    assert "error: echo, pinned: facts: none → equal: the file does not have them\n" in printed
    assert printed.endswith(HELP.format(" --only echo"))
    assert run(*UPDATE, "--only", "echo") == 0 and run(*CHECK) == 0
    write_index("echo")
    assert run(*CHECK, "--only", "echo") == 0, "nothing is said of models that are not looked at"
    capsys.readouterr()
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    assert "error: convs, unpinned: facts: known → none: the folder does not have the model\n" in printed
    assert printed.endswith(HELP.format(""))
    assert run(*UPDATE) == 0 and run(*CHECK) == 0
    assert "convs" not in Path(FACTS).read_text()


def test_a_level_that_the_file_does_not_have_is_no_drift(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*UPDATE) == 0
    Path(FACTS).write_text(Path(FACTS).read_text().replace("level.scalar", "level.other"))
    assert run(*CHECK) == 0
    note = f"note: {FACTS} has no facts of 2 models at the level scalar of this processor: `candlec zoo update --zoo . "
    assert f"{note}--facts {FACTS}` adds them\n" in capsys.readouterr().err
    assert run(*UPDATE) == 0
    written = Path(FACTS).read_text()
    assert written.count("level.scalar.peak_bytes") == written.count("level.other.peak_bytes") == 4
    assert run(*CHECK) == 0
    assert "note:" not in capsys.readouterr().err


def test_a_refused_model_has_only_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    volume = "(float[1, 1, 2, 2, 2] x, float[1, 1, 1, 1, 1] w) => (y) { y = Conv (x, w) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> m {volume}'), "volume.onnx")
    np.savez("io.npz", x=np.ones((1, 1, 2, 2, 2), np.float32), w=np.ones((1, 1, 1, 1, 1), np.float32))
    write_index("volume")
    assert run(*UPDATE, "--baseline", "zoo.toml") == 0
    assert table("volume.pinned") == table("volume.unpinned") == ['status = "refused (CC0301)"']
    assert run(*CHECK, "--baseline", "zoo.toml") == 0
    change("CC0301", "CC0205")
    assert run(*CHECK, "--baseline", "zoo.toml") == 1
    assert "volume, pinned: status: refused (CC0205) → refused (CC0301)\n" in capsys.readouterr().err


def test_a_model_that_cannot_be_checked_keeps_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*UPDATE) == 0
    written = Path(FACTS).read_text()
    Path("convs.npz").unlink()
    assert run(*UPDATE) == 1
    assert Path(FACTS).read_text() == written
    capsys.readouterr()
    assert run(*CHECK) == 1
    printed = capsys.readouterr().err
    assert "error: convs: it cannot be checked: there is no file convs.npz" in printed and "→" not in printed


def test_a_difference_without_a_bound_has_no_facts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*UPDATE) == 0
    written = Path(FACTS).read_text()
    monkeypatch.setattr(tasks, "check", check_without_bound)
    assert run(*UPDATE) == 1
    assert "error: convs: its difference has no bound: y: odd" in capsys.readouterr().err
    assert Path(FACTS).read_text() == written


def check_without_bound(asked: Check, channel: Channel) -> Any:
    """A check whose outcomes differ in a way that the tolerance does not measure."""
    for shapes in asked.shapes:
        for variant in variants(asked.device):
            outcome = Outcome(asked.entry.name, str(variant), "different", ("y: odd",))
            channel.part([shapes, outcome.unjudged])
    return {shapes: {"plan": {}, "levels": {}} for shapes in asked.shapes}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "zoo.facts.toml is not a file of facts: "),
        ("[echo]\nreason = 'a baseline'", "it needs the name of a `device` and tables [model.NAME.SHAPES]"),
        ("device = 'cuda'", "zoo.facts.toml has the facts of cuda, not of cpu: name another file"),
        ("device = 'cpu'\n[model.echo.odd]", "the model echo has odd: use only pinned, unpinned"),
        ("device = 'cpu'\n[model]\necho = 1", "echo is 1: write a table"),
        ("device = 'cpu'\n[model.echo.pinned]\nsteps = {}", "echo.pinned has no status"),
        ("device = 'cpu'\n[model.echo.pinned]\nstatus = 'equal'\nsteps = [1]", "steps is [1]: expected a number"),
    ],
)
def test_a_file_of_facts_is_sound_or_refused(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(FACTS).write_text(text)
    for command in (CHECK, UPDATE):
        assert run(*command) == 1
        assert said in capsys.readouterr().err
    assert Path(FACTS).read_text() == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["zoo", "update", "--zoo", "."], "name a file to write: add --baseline FILE, --facts FILE, or both"),
        (["zoo", "update", "--zoo", ".", "--facts", "f.toml", "--baseline", "f.toml"], "f.toml is the --baseline of"),
        (["zoo", "run", "--zoo", ".", "--facts", "f.toml", "--junit", "f.toml"], "f.toml is an input of"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.toml").write_text("device = 'cpu'")
    assert run(*arguments) != 0
    assert said in capsys.readouterr().err


def test_results_have_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    results = ["--results", "results.jsonl"]
    assert run(*UPDATE, *results) == 0
    lines = [json.loads(line) for line in Path("results.jsonl").read_text().splitlines()]
    facts: dict[str, Any] = {line["model"]: line["ending"]["result"]["pinned"] for line in lines}
    assert facts["convs"]["plan"]["steps"] == {"Conv": 2} and list(facts["echo"]["levels"]) == ["scalar"]
    Path(FACTS).unlink()
    assert run(*UPDATE, *results, "--resume") == 0
    assert "steps = {Conv = 2}" in Path(FACTS).read_text(), "the facts of the file of results"
