"""The measures of a model's task: known values, wrong use, and a plan that does not reach one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler.zoo
from compiler.zoo.agreement.boxes import boxes, overlaps
from compiler.zoo.agreement.cosine import cosine
from compiler.zoo.agreement.psnr import psnr
from compiler.zoo.agreement.task import Task, tasks_of
from compiler.zoo.agreement.tokens import tokens
from compiler.zoo.agreement.top import top
from compiler.zoo.index import read_index
from compiler.zoo.measures_file import with_measures


def of(*rows: Any) -> np.ndarray[Any, Any]:
    return np.array(rows, np.float32)


SCORES = of([1, 9, 2, 3, 4, 5, 6], [7, 6, 5, 4, 3, 2, 1])


@pytest.mark.parametrize(
    ("found", "count", "value"),
    [
        (SCORES, 1, 1.0),
        (SCORES, 5, 1.0),
        (SCORES * 0.5, 1, 1.0),
        (SCORES[:, ::-1], 1, 0.0),
        (of([1, 9, 2, 3, 4, 5, 6], [6, 7, 5, 4, 3, 2, 1]), 1, 0.5),
        (of([1, 9, 2, 3, 4, 5, 6], [6, 7, 5, 4, 3, 2, 1]), 5, 1.0),
        (of([9, 1, 2, 3, 4, 5, 6], [7, 6, 5, 4, 3, 2, 1]), 5, 0.9),
    ],
)
def test_top(found: np.ndarray[Any, Any], count: int, value: float) -> None:
    assert top(SCORES, found, count) == pytest.approx(value)
    assert top(SCORES.T, found.T, count, axis=0) == pytest.approx(value)


def test_classes_with_equal_scores_are_interchangeable() -> None:
    assert top(of([5, 5, 1]), of([1, 5, 5]), 1) == 1
    assert tokens(of([5, 5, 1]), of([1, 5, 5])) == 1


def test_cosine() -> None:
    a, b = of([3, 4], [1, 0], [0, 0]), of([4, 3], [2, 0], [0, 0])
    assert cosine(a, b) == pytest.approx(24 / 25)
    assert cosine(a, 7 * a) == pytest.approx(1)
    assert cosine(a, -a) == pytest.approx(-1)
    assert cosine(of([1, 0], [0, 0]), of([1, 0], [1, 0])) == 0
    assert cosine(of([1, 2], [3, 4]), of([3, 2], [1, 4]), axis=0) == pytest.approx(6 / 10)


def test_psnr() -> None:
    image = of([0, 255], [128, 64])
    assert psnr(image, image) == math.inf
    assert psnr(image, image + 2.55) == pytest.approx(40, abs=1e-4)
    assert psnr(image / 255, image / 255 + np.float32(0.001)) == pytest.approx(60, abs=1e-3)
    assert psnr(of([1, 1]), of([1, 2])) == -math.inf
    assert math.isnan(psnr(image, image * np.nan))


def test_tokens() -> None:
    text = of([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0])  # 0 1 2 0
    assert tokens(text, text * 3) == 1
    assert tokens(text, of([1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0])) == 0.5
    other = of([0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0])
    assert tokens(np.stack([text, text]), np.stack([text, other])) == 0


BOXES, LABELS = of([0, 0, 2, 2], [10, 10, 14, 14], [20, 20, 30, 30]), np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("found", "labels", "value"),
    [
        (BOXES, LABELS, 1.0),
        (BOXES[::-1], LABELS[::-1], 1.0),
        (BOXES[:2], LABELS[:2], 4 / 5),
        (BOXES, np.array([1, 1, 1]), 2 / 3),
        (BOXES + of([0, 0, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0]), LABELS, 1.0),
        (BOXES + of([0, 0, 2.1, 0], [0, 0, 0, 0], [0, 0, 0, 0]), LABELS, 2 / 3),
        (BOXES[[1, 1, 2]], np.array([1, 1, 1]), 2 / 3),
        (BOXES[:0], LABELS[:0], 0.0),
    ],
)
def test_boxes(found: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], value: float) -> None:
    assert boxes((BOXES, LABELS), (found, labels), 0.5, "corners") == pytest.approx(value)
    assert boxes((found, labels), (BOXES, LABELS), 0.5, "corners") == pytest.approx(value)


def test_overlaps_and_forms_of_boxes() -> None:
    found = overlaps(of([0, 0, 2, 2], [1, 1, 1, 1]), of([1, 0, 3, 2], [0, 0, 1, 1]))
    np.testing.assert_allclose(found, np.array([[1 / 3, 1 / 4], [0, 0]]))
    centers = of([1, 1, 2, 2])
    assert boxes((centers, LABELS[:1]), (centers + of([1, 0, 0, 0]), LABELS[:1]), 0.34, "centers") == 0
    assert boxes((centers, LABELS[:1]), (centers + of([1, 0, 0, 0]), LABELS[:1]), 0.33, "centers") == 1
    assert boxes((BOXES[:0], LABELS[:0]), (BOXES[:0], LABELS[:0]), 0.5, "corners") == 1


def test_the_boxes_of_outputs_count_from_a_score() -> None:
    apart = Task("boxes", "boxes", 1, scores="scores", skip=1)
    together = Task("boxes", "y", 1)
    scores = of([0.9, 0.1], [0.2, 0.8], [0.1, 0.9])
    others = of([0.9, 0.1], [0.2, 0.8], [0.9, 0.1])
    given, changed = ({"boxes": BOXES[None], "scores": each[None]} for each in (scores, others))
    assert apart.value(given, given) == 1
    assert apart.value(given, changed) == pytest.approx(2 / 3)
    given, changed = ({"y": np.concatenate([BOXES, each], axis=1)} for each in (scores, others))
    assert together.value(given, changed) == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "has a task without measures"),
        ("top1", "has the task 'top1', not an object"),
        ({"measure": "top2"}, "has the measure 'top2': use one of top1, top5, cosine, psnr, boxes, tokens"),
        ({"measure": "top1", "at_least": 1}, "has the measure top1 without output"),
        ({"measure": "top1", "output": "y"}, "has the measure top1 without at_least"),
        ({"measure": "top1", "output": "y", "at_least": "1"}, "has the at_least '1' in the measure top1"),
        ({"measure": "top1", "output": "y", "at_least": math.nan}, "has the at_least nan in the measure top1"),
        ({"measure": "top1", "output": "y", "at_least": 1, "axis": 1.5}, "has the axis 1.5 in the measure top1"),
        ({"measure": "top1", "output": 3, "at_least": 1}, "has the output 3 in the measure top1"),
        ({"measure": "psnr", "output": "y", "at_least": 1, "form": "corners"}, "has 'form' in the measure psnr: use "),
        ({"measure": "boxes", "output": "y", "at_least": 1, "form": "corner"}, "has the form 'corner' in the measure"),
        ({"measure": "boxes", "output": "y", "at_least": 1, "overlaps": 1}, "has 'overlaps' in the measure boxes: "),
    ],
)
def test_a_wrong_task_is_a_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as error:
        tasks_of(data)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (Task("top1", "z", 1), "top1 of z: the model has no output 'z'; its outputs are y, s"),
        (Task("top5", "y", 1), "top5 of y: there are 3 classes on axis -1, fewer than 5"),
        (Task("cosine", "y", 1, axis=2), r"cosine of y: an output of shape \[2, 3\] has no axis 2"),
        (Task("psnr", "s", 1), "psnr of s: the output s has no numbers"),
        (Task("boxes", "y", 1), r"boxes of y: boxes of shape \[2, 3\] with scores of shape \[2, 0\]"),
        (Task("boxes", "y", 1, scores="y", skip=3), "boxes of y: boxes of shape"),
    ],
)
def test_outputs_without_what_a_measure_needs(task: Task, sentence: str) -> None:
    outputs = {"y": of([1, 2, 3], [4, 5, 6]), "s": np.array(["a"], object)}
    with pytest.raises(ValueError, match=sentence):
        task.compare(outputs, outputs)
    with pytest.raises(ValueError, match=r"tokens of y: an output of shape \[3\]"):
        Task("tokens", "y", 1).compare({"y": of(1, 2, 3)}, {"y": of(1, 2, 3)})


TASK = {"measure": "top1", "output": "y", "at_least": 1}


def folder(path: Path, *tasks: dict[str, Any]) -> Path:
    """A folder with the model `y = -x`."""
    text = '<ir_version: 8, opset_import: ["" : 13]> negated (float[1, 6] x) => (float[1, 6] y) { y = Neg (x) }'
    onnx.save(onnx.parser.parse_model(text), path / "negated.onnx")
    np.savez(path / "negated.npz", x=of([1, 2, 3, 4, 5, 6]))
    entry = {"name": "negated", "file": "negated.onnx", "cases": ["negated.npz"]} | (
        {"task": [*tasks]} if tasks else {}
    )
    (path / "INDEX.json").write_text(json.dumps([entry]), encoding="utf-8")
    return path


def test_a_check_reports_the_measures(tmp_path: Path) -> None:
    zoo = folder(tmp_path, TASK, {**TASK, "measure": "cosine"})
    [outcome] = compiler.zoo.run(zoo)
    assert outcome.ok
    shown = {each["name"]: (each["verdict"], each.get("note")) for each in outcome.outcomes[0].outputs}
    assert shown == {"y": ("equal", None), "top1 of y": ("equal", "1"), "cosine of y": ("equal", "1")}


def test_a_value_that_is_too_small_fails(tmp_path: Path) -> None:
    [outcome] = compiler.zoo.run(folder(tmp_path, {**TASK, "at_least": 1.5}))
    assert not outcome.ok and {each.verdict for each in outcome.outcomes} == {"different"}
    assert "negated: top1 of y: 1, and at least 1.5 is required" in outcome.message


def test_a_measure_of_no_output_fails(tmp_path: Path) -> None:
    [outcome] = compiler.zoo.run(folder(tmp_path, {**TASK, "output": "z"}))
    assert not outcome.ok and {each.verdict for each in outcome.outcomes} == {"failed"}
    assert "top1 of z: the model has no output 'z'; its outputs are y" in outcome.message


def test_a_file_of_measures_adds_to_the_index(tmp_path: Path) -> None:
    entries = read_index(folder(tmp_path, TASK))
    path = tmp_path / "measures.toml"
    path.write_text('[negated]\ntask = [{ measure = "psnr", output = "y", at_least = 80 }]\n', encoding="utf-8")
    [entry] = with_measures(entries, path)
    assert [each.name for each in entry.tasks] == ["top1 of y", "psnr of y"]
    for text, sentence in [
        ("[other]\ntask = []", "the model other has a task without measures"),
        ("[negated]\nmeasure = 1", "negated needs a table with only the key task"),
        ("[negated", "is not a file of measures"),
    ]:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=sentence):
            with_measures(entries, path)
    path.write_text('[other]\ntask = { measure = "psnr", output = "y", at_least = 80 }\n', encoding="utf-8")
    with pytest.raises(ValueError, match="has measures of other, which the folder does not have"):
        with_measures(entries, path)
    assert with_measures(entries, path, ["negated"]) == with_measures(entries, None) == entries
