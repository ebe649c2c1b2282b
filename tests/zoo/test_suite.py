"""`compiler.zoo`: the checks of a folder as cases of a test and as outcomes, and what they compute only once."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
import compiler.zoo
from compiler.accuracy.compare import compare
from compiler.accuracy.reference import Reference
from compiler.processes.child import Channel
from compiler.zoo import check_model, tasks
from compiler.zoo.index import read_index
from compiler.zoo.outcome import SHAPES, Outcome
from compiler.zoo.remarks import of_outputs, worst_outputs
from compiler.zoo.task_arguments import Check
from tests.tasks import check_or_end

MODELS = Path(__file__).parents[2] / "models"
ECHO = '<ir_version: 9, opset_import: ["": 20]> echo (float[n] x) => (float[n] y) { y = Neg (x) }'


@pytest.mark.parametrize("case", compiler.zoo.cases(MODELS, shapes=SHAPES), ids=lambda case: case.id)
def test_the_models_of_the_repository_equal_onnxruntime(case: compiler.zoo.Case) -> None:
    outcome = case.check(timeout=300)
    assert outcome.ok, outcome.message
    assert outcome.worst.verdict == "equal" and outcome.message == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with models that equal onnxruntime, a model that is refused, and a model without its file."""
    onnx.save(onnx.parser.parse_model(ECHO), tmp_path / "echo.onnx")
    odd = ECHO.replace("Neg", "private.Melt").replace('["": 20]', '["": 20, "private": 1]')
    onnx.save(onnx.parser.parse_model(odd), tmp_path / "odd.onnx")
    for name, size in {"two": 2, "other_two": 2, "three": 3}.items():
        np.savez(tmp_path / f"{name}.npz", x=np.arange(size, dtype=np.float32))
    write_index(tmp_path, {"name": "echo", "tags": ["small"]}, {"name": "gone", "file": "gone.onnx"}, {"name": "other"})
    return tmp_path


def write_index(folder: Path, *models: dict[str, Any]) -> None:
    usual = {"file": "echo.onnx", "cases": ["two.npz", "other_two.npz", "three.npz"]}
    (folder / "INDEX.json").write_text(json.dumps([usual | model for model in models]))


def test_a_run_gives_the_outcomes_in_the_order_of_the_cases(folder: Path) -> None:
    cases = compiler.zoo.cases(folder, shapes=SHAPES)
    outcomes = compiler.zoo.run(folder, shapes=SHAPES, jobs=2)
    assert [each.case for each in outcomes] == cases
    assert [each.id for each in cases] == [
        f"{name}-{shapes}" for shapes in SHAPES for name in ("echo", "gone", "other")
    ]
    assert [each.ok for each in outcomes] == [True, False, True] * 2
    problem = f"it cannot be checked: there is no file {folder / 'gone.onnx'}"
    assert outcomes[1].message.splitlines()[0] == f"gone-pinned: {problem}"
    assert [each.variant for each in outcomes[0].outcomes] == [
        *("optimized, 1 thread", "optimized, 2 threads", "plain, 1 thread", "plain, 2 threads")
    ]


def test_a_case_that_crashes_has_an_outcome(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "check", check_or_end)
    write_index(folder, {"name": "crash"}, {"name": "echo"}, {"name": "hang"}, {"name": "bug"})
    crash, echo, hang, bug = compiler.zoo.run(folder, jobs=2, timeout=5)
    assert (crash.worst.verdict, hang.worst.verdict, bug.worst.verdict) == ("crashed", "timed out", "crashed")
    assert crash.message == (
        "crash-pinned: it crashed with SIGSEGV (segmentation fault); last phase: run: pinned, optimized, 1 thread, io"
    )
    assert hang.message.endswith("last phase: compile: pinned, optimized, after the pass sort_nodes")
    assert bug.message == "bug-pinned: AssertionError: an axis" and bug.ending.is_bug
    assert echo.ok


def told_of(folder: Path, *shapes: Any) -> list[Outcome]:
    """The outcomes of a check in this process."""
    parts: list[Any] = []
    entry = next(each for each in read_index(folder) if each.name == "echo")
    tasks.check(Check(entry, shapes), Channel(lambda kind, data: parts.append(data) if kind == "part" else None))
    return [Outcome.from_unjudged(data) for _, data in parts]


@pytest.mark.parametrize(("shapes", "compilations"), [(("pinned",), 4), (("unpinned",), 2), (SHAPES, 6)])
def test_nothing_is_computed_twice(
    folder: Path, shapes: tuple[Any, ...], compilations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of the three cases have the same shapes: one plan runs both, and onnxruntime computes each case once."""
    counts: Counter[str] = Counter()
    compile_model, run = check_model.compile_stored, Reference.run

    def compile_and_count(*given: Any) -> Any:
        counts["compilations"] += 1
        return compile_model(*given)

    def run_and_count(*given: Any) -> Any:
        counts["references"] += 1
        return run(*given)

    monkeypatch.setattr(check_model, "compile_stored", compile_and_count)
    monkeypatch.setattr(Reference, "run", run_and_count)
    assert [each.verdict for each in told_of(folder, *shapes)] == ["equal"] * 4 * len(shapes)
    assert counts == {"compilations": compilations, "references": 3}


def test_an_outcome_is_the_same_after_json() -> None:
    outcome = Outcome("a", "plain, cuda", "refused", ("why",), float("inf"), 1.5, codes=("CC0301",), note="a note")
    for each in (outcome, replace(outcome, outputs=({"name": "y", "shape": [2, 3], "share": None},))):
        assert json.loads(json.dumps(each.data)) == each.data
        assert Outcome.from_unjudged(json.loads(json.dumps(each.unjudged))) == each


def test_an_outcome_has_the_worst_difference_of_each_output() -> None:
    x = np.array([1.0, 2.0], np.float32)
    given = {"a": [x, x + 1e-6, x], "b": [x, x, x * np.inf]}
    cases = [
        of_outputs(
            Outcome("a", "plain, cuda", "equal"),
            f"case {number}",
            compare(dict.fromkeys(given, x), {name: arrays[number] for name, arrays in given.items()}),
        )
        for number in range(3)
    ]
    a, b = worst_outputs(cases)
    assert (a["name"], a["dtype"], a["shape"], a["verdict"], a["case"]) == ("a", "float32", [2], "equal", "case 1")
    assert a["difference"] == pytest.approx(1e-6, rel=0.1) and a["share"] == a["difference"] / a["allowed"]
    assert (a["error"], a["reference_error"]) == (None, None), "only measured beyond the tolerance"
    assert (b["name"], b["verdict"], b["case"]) == ("b", "different", "case 2")
    assert (b["difference"], b["share"]) == (None, None), "JSON has no infinity"


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ((), ["echo", "odd", "other"]),
        (("other", "echo"), ["echo", "other"]),
        (("tag:small",), ["echo"]),
        (("tag:small", "odd"), ["echo", "odd"]),
        (("op:Neg",), ["echo", "other"]),
        (("op:private.Melt",), ["odd"]),
    ],
)
def test_expressions_select_models(folder: Path, only: tuple[str, ...], names: list[str]) -> None:
    write_index(folder, {"name": "echo", "tags": ["small"]}, {"name": "odd", "file": "odd.onnx"}, {"name": "other"})
    assert [each.entry.name for each in compiler.zoo.cases(folder, only=only)] == names


@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ("ech", "the folder has no model ech: did you mean echo?"),
        ("x", "the folder has no model x: write the name of a model, tag:TAG, op:OPERATOR, failed or @FILE"),
        ("tag:smalls", "no model has the tag smalls: did you mean small?"),
        ("tag:9", "no model has the tag 9: the tags are small"),
        ("op:Sign", "no model has the operator Sign"),
        ("failed", "only a file of results says which models failed: add --results FILE"),
    ],
)
def test_an_expression_has_to_select_a_model(folder: Path, only: str, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        compiler.zoo.cases(folder, only=[only])
    assert str(error.value) == problem


def test_public_names_are_there() -> None:
    for name in compiler.zoo.__all__:
        assert getattr(compiler.zoo, name).__name__ == name and name in dir(compiler.zoo)
    with pytest.raises(AttributeError, match="no attribute 'casses'"):
        compiler.zoo.casses  # noqa: B018
