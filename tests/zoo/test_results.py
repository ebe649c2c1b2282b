"""The file of results: which results it keeps, and which models have to run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler.zoo
from compiler.processes.ending import Ending
from compiler.processes.run import Limits
from compiler.zoo import results
from compiler.zoo.index import Entry
from compiler.zoo.outcome import Outcome, variants
from compiler.zoo.outcome_judgment import outcomes_of
from compiler.zoo.records import read_records
from compiler.zoo.results import Results
from compiler.zoo.task_arguments import Check, Measure

ECHO = '<ir_version: 9, opset_import: ["": 20]> echo (float[n] x) => (float[n] y) { y = Neg (x) }'
NONE = Limits()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """A check of a model in the working folder."""
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(ECHO), "echo.onnx")
    np.savez("io.npz", x=np.zeros(2, np.float32))
    return Check(Entry("echo", Path("echo.onnx"), (Path("io.npz"),)), ("pinned",))


def kept(asked: Check, ending: Ending, limits: Limits = NONE, is_acceptable: bool = True) -> None:
    """Write a result to the file."""
    made = Results(Path("results.jsonl"))
    made.begin([asked])
    made.add(asked, limits, ending, is_acceptable, "equal")


def found(asked: Check, limits: Limits = NONE) -> Ending | None:
    return Results(Path("results.jsonl")).ending(asked, limits)


DONE = Ending("done", None, (["pinned", {"share": 0.5}],), "compare", seconds=1.5)


def test_a_result_is_kept(asked: Check) -> None:
    assert found(asked) is None
    kept(asked, DONE)
    assert found(asked) == DONE
    assert found(asked, Limits(3, 4)) == DONE, "a limit that a task did not reach does not matter"
    [line] = Path("results.jsonl").read_text().splitlines()
    assert json.loads(line)["model"] == "echo" and json.loads(line)["what"] == "check, pinned, cpu"


def test_a_file_of_an_earlier_version_names_variants_ways(asked: Check) -> None:
    outcomes = [Outcome("echo", str(each), "equal", share=0.5) for each in variants("cpu")]
    parts = [("way" if key == "variant" else key, value) for key, value in outcomes[0].unjudged.items()]
    former = [["pinned", dict(parts)], *(["pinned", each.unjudged] for each in outcomes[1:])]
    kept(asked, replace(DONE, parts=tuple(former)))
    assert outcomes_of(asked, found(asked) or DONE) == {"pinned": outcomes}
    [record] = read_records(Path("results.jsonl")).values()
    assert str(record.result) == "equal" and record.error == 0.5


def test_a_result_has_the_tags_of_the_index(asked: Check) -> None:
    tagged = replace(asked, entry=replace(asked.entry, tags=("audio", "small")))
    kept(tagged, DONE)
    renamed = replace(asked, entry=replace(asked.entry, tags=("speech",)))
    again = Results(Path("results.jsonl"))
    assert again.ending(renamed, NONE) == DONE, "tags decide no result"
    again.begin([])
    [line] = results.read_results(Path("results.jsonl"))
    assert line["tags"] == ["speech"]
    del line["tags"]
    Path("results.jsonl").write_text(f"{json.dumps(line)}\n")
    assert found(asked) == DONE, "earlier versions wrote no tags"


CHANGES: dict[str, Any] = {
    "model": lambda: onnx.save(onnx.parser.parse_model(ECHO.replace("Neg", "Abs")), "echo.onnx"),
    "case": lambda: np.savez("io.npz", x=np.ones(2, np.float32)),
    "file": lambda: Path("io.npz").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_makes_it_void(asked: Check, change: str) -> None:
    kept(asked, DONE)
    CHANGES[change]()
    assert found(asked) is None


def test_changed_weights_make_it_void(asked: Check) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 20]> m (float[2] x) => (float[2] y) <float[2] w> { y = Add (x, w) }'
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(model, "echo.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    kept(asked, DONE)
    assert found(asked) == DONE
    Path("weights.bin").write_bytes(bytes(8))
    assert found(asked) is None


@pytest.mark.parametrize(
    "other",
    [
        lambda asked: Check(asked.entry, ("unpinned",)),
        lambda asked: Check(asked.entry, ("pinned",), "cuda"),
        lambda asked: Measure(asked.entry),
        lambda asked: Check(Entry("echo", asked.entry.path, asked.entry.cases, 1e-3), ("pinned",)),
    ],
    ids=["shapes", "device", "task", "tolerance"],
)
def test_other_options_have_other_results(asked: Check, other: Any) -> None:
    kept(asked, DONE)
    assert found(other(asked)) is None


def test_another_version_has_other_results(asked: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(asked, DONE)
    monkeypatch.setattr(results, "_versions", lambda: ["another"])
    assert found(asked) is None


def test_a_limit_that_was_reached_counts(asked: Check) -> None:
    limits = Limits(seconds=2)
    kept(asked, Ending("timed out", message="it took more than 2 s"), limits)
    assert found(asked, limits) is not None
    assert found(asked, Limits(seconds=3)) is None


def test_a_line_that_was_cut_off_does_not_count(asked: Check) -> None:
    kept(asked, DONE)
    path = Path("results.jsonl")
    path.write_bytes(path.read_bytes() + b'{"model": "oth')
    assert found(asked) == DONE
    Results(path).begin([])
    assert len(path.read_bytes().splitlines()) == 1


def test_other_models_and_tasks_keep_their_lines(asked: Check) -> None:
    kept(asked, DONE)
    kept(Check(asked.entry, ("unpinned",)), DONE, is_acceptable=False)
    assert found(asked) == DONE
    assert Results(Path("results.jsonl")).failed == {"echo"}


@pytest.mark.parametrize("text", ["[1, 2]\n", "no results\n", "no results", '{"model": "echo"}\n'])
def test_another_kind_of_file_is_refused(asked: Check, text: str) -> None:
    Path("results.jsonl").write_text(text)
    with pytest.raises(ValueError, match=r"results.jsonl is not a file of results of `candlec zoo`: "):
        Results(Path("results.jsonl"))


def test_a_run_with_results_can_be_resumed(asked: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("INDEX.json").write_text(json.dumps([{"name": "echo", "file": "echo.onnx", "cases": ["io.npz"]}]))
    first = compiler.zoo.run(".", results="results.jsonl")
    monkeypatch.setattr("compiler.processes.run.Worker", lambda *_: pytest.fail("a process has started"))
    assert compiler.zoo.run(".", results="results.jsonl", resume=True) == first
