"""The search for the first pass after which a plan is wrong, and for the first wrong step."""

from __future__ import annotations

import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from compiler import CompileError, InputError, Options, pipeline
from compiler.bisect import crash, error, extract
from compiler.bisect.crash import find_crash
from compiler.bisect.error import WrongResult, find_error
from compiler.bisect.extract import extract_step
from compiler.bisect.halving import first_wrong, optional_passes
from compiler.errors import Diagnostic
from tests import broken_passes
from tests.large_model import write_model

ROOT = Path(__file__).parent.parent
X = np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32)


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_the_search_finds_every_place(count: int) -> None:
    for place in range(1, count + 1):
        tried: list[int] = []
        assert first_wrong(count, lambda each, place=place: each >= place, tried.append) == (place - 1, place)  # type: ignore[misc]
        assert len(tried) <= count.bit_length()


def test_the_search_skips_what_cannot_be_tried() -> None:
    def is_wrong(count: int) -> bool | None:
        return None if count in (4, 5, 6) else count > 4

    assert first_wrong(10, is_wrong) == (3, 7)
    assert first_wrong(10, lambda _: None) == (0, 10)


def test_an_equal_plan_has_no_culprit() -> None:
    found = find_error(broken_passes.model(), {"x": X})
    assert found.report.ok
    assert (found.culprit, found.step) == (None, None)


@pytest.mark.parametrize("name", ["drop_noops", "merge_reshapes", "recognize_gelu", "read_sequences_first"])
def test_a_wrong_pass_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, name)
    found = find_error(broken_passes.model(), {"x": X})
    assert not found.report.ok
    assert found.culprit is not None and found.step is not None
    assert (found.culprit.name, found.culprit.others) == (name, ())
    assert [each.nodes for each in found.culprit.places] == [("Add(shift)",)]
    assert "Add(shift)" in found.step.origin
    assert found.step.output.name in ("shifted", "soft")


def test_passes_that_cannot_be_tried_are_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, "drop_noops")
    compile, names = error.compile_stored, optional_passes()
    untried = names[names.index("drop_noops") - 1]

    def refusing(model: object, options: Options) -> object:
        if options.passes and options.passes[-1] == untried:
            raise CompileError([Diagnostic("CC0505", "a fact does not hold")])
        return compile(model, options)  # type: ignore[arg-type]

    monkeypatch.setattr(error, "compile_stored", refusing)
    culprit = find_error(broken_passes.model(), {"x": X}).culprit
    assert culprit is not None
    assert (culprit.name, culprit.others) == ("drop_noops", (untried,))


def test_a_wrong_lowering_has_no_pass_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    found = find_error(broken_passes.model(), lambda declared: {declared[0].name: X})
    assert not found.report.ok
    assert found.culprit is None and found.step is not None
    assert (found.step.op, found.step.output.name, found.step.origin) == ("Binary", "shifted", "Add(shift)")
    assert found.before == ("whole", "scaled", "sorted")


def small_model(found: WrongResult, folder: Path) -> onnx.ModelProto:
    """The small model of a difference. The difference must occur in this process and in no new process."""
    part = extract_step(broken_passes.model(), found, folder, threads=1)
    assert part.differs and not part.problem
    assert [each.name for each in part.files] == ["step.onnx", "step.npz", "replay.py"]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "replay.py"))
    assert ended.value.code == 1
    command = [sys.executable, "replay.py"]
    env = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ": equal, the largest difference is " in done.stdout
    return onnx.load(folder / "step.onnx")


def test_the_small_model_of_a_wrong_pass_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    small = small_model(find_error(broken_passes.model(), {"x": X}), tmp_path)
    assert [node.op_type for node in small.graph.node][:1] == ["Add"]
    assert [each.name for each in small.graph.input] == ["sorted"]


def test_the_small_model_of_a_wrong_lowering_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    small = small_model(find_error(broken_passes.model(), {"x": X}), tmp_path)
    assert [node.name for node in small.graph.node] == ["shift"]
    with np.load(tmp_path / "step.npz") as arrays:
        assert {name: array.shape for name, array in arrays.items()} == {"sorted": (2, 4)}
    assert "Options(optimize=False)" in (tmp_path / "replay.py").read_text()


BRANCHES = """
<ir_version: 9, opset_import: ["": 20]>
m (bool b, float[4] x) => (float[4] y) {
    inner = Abs (x)
    chosen = If (b) <
        then_branch = t () => (float[4] p) { p = Neg (inner) },
        else_branch = e () => (float[4] q) { other = Neg (inner)  q = Sqrt (other) }
    >
    y = Add (chosen, inner)
}
"""


@pytest.mark.parametrize("operator", ["Add", "If"])
def test_a_part_has_what_its_branches_read(operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    text = BRANCHES if operator == "Add" else BRANCHES.replace("Neg (inner) }", "Add (inner, inner) }")
    branching = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), branching)
    found = find_error(branching, {"b": np.array(True), "x": X[0]})
    part = extract_step(branching, found, tmp_path)
    assert part.differs
    small = onnx.load(tmp_path / "step.onnx").graph
    assert [node.op_type for node in small.node] == [operator]
    assert {each.name for each in small.input} == ({"chosen", "inner"} if operator == "Add" else {"b", "inner"})


def test_weights_in_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    path, folder = tmp_path / "m.onnx", tmp_path / "part"
    made = broken_passes.model()
    for each in (each for each in made.graph.initializer if each.name != "four"):  # onnxruntime reads this one first
        each.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(each), each.name))
    onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    folder.mkdir()
    assert extract_step(path, find_error(path, {"x": X}), folder).differs


def test_large_weights_of_a_part_are_in_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LARGE", 1)
    monkeypatch.setattr(extract, "MOST_INSIDE", 1)
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    path, folder = write_model(tmp_path, 2, 128), tmp_path / "part"
    folder.mkdir()
    found = find_error(path, {"x": np.ones((2, 128), np.float32)})
    assert found.culprit is not None and found.culprit.name == "merge_reshapes"
    part = extract_step(path, found, folder)
    assert part.differs
    assert [each.name for each in part.files] == ["step.onnx", "step.npz", "replay.py", "step.data"]
    assert (folder / "step.data").stat().st_size >= 128 * 4


def test_a_part_without_the_difference_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken_passes.let_pass_change_constants(broken, "merge_reshapes")
        found = find_error(broken_passes.model(), {"x": X})
    part = extract_step(broken_passes.model(), found, tmp_path)
    assert (len(part.files), part.differs, part.problem) == (3, False, "")


def test_strings_are_no_inputs_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    text = """<ir_version: 9, opset_import: ["": 20, "ai.onnx.ml": 4]> m (string[2] s, float[2] x) => (float[2] y) {
        code = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_floats = [1.0, 2.0]> (s)
        y = Add (code, x)
    }"""
    made = onnx.parser.parse_model(text)
    inputs = {"s": np.array(["a", "b"], object), "x": np.ones(2, np.float32)}
    found = find_error(made, inputs)
    part = extract_step(made, found, tmp_path)
    assert part.differs  # the part begins at the numbers
    small = extract_step(made, replace(found, before=()), tmp_path)
    assert (small.files, small.problem) == ((), "the value of the step, or an input, is not an array of numbers")


def test_a_model_that_runs_does_not_crash() -> None:
    assert find_crash(broken_passes.model(), {"x": X}, threads=1) is None


@pytest.mark.parametrize(
    ("task", "name", "said"),
    [
        (broken_passes.attempt_with_failing_pass, "merge_reshapes", "AssertionError: the pass is broken"),
        (broken_passes.attempt_with_deadly_pass, "drop_noops", "its process ended with exit code 3"),
    ],
)
def test_a_pass_that_crashes_is_named(task: object, name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "attempt", task)
    found = find_crash(broken_passes.model(), {"x": X}, threads=1)
    assert found is not None and found.culprit is not None
    assert (found.phase, found.culprit.name, found.culprit.others) == ("compile", name, ())
    assert said in found.message


def test_a_lowering_that_crashes_is_no_fault_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "attempt", broken_passes.attempt_without_lowering)
    found = find_crash(broken_passes.model(), {"x": X}, threads=1)
    assert found is not None
    assert (found.phase, found.culprit) == ("compile", None)
    assert found.message.startswith("AssertionError: the lowering is broken")


FROZEN = """
<ir_version: 9, opset_import: ["": 20]>
frozen (float[batch, time] x) => (float[1, 4] y) <int64[2] s = {1, 4}> { y = Reshape (x, s) }
"""


def test_a_run_that_fails_is_a_crash() -> None:
    found = find_crash(onnx.parser.parse_model(FROZEN), {"x": X}, threads=1)
    assert found is not None
    assert (found.phase, found.culprit) == ("run", None)


def test_a_refused_model_and_wrong_inputs_are_no_crash() -> None:
    odd = (
        '<ir_version: 9, opset_import: ["": 20, "private": 1]> odd (float[2] x) => (float[2] y) { y = private.Melt(x) }'
    )
    with pytest.raises(CompileError):
        find_crash(onnx.parser.parse_model(odd), {})
    with pytest.raises(InputError):
        find_crash(broken_passes.model(), {"z": X}, threads=1)
