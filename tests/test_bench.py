"""Timing: engines run in turns, and a failing engine does not stop the others. Also the summaries of times."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler.accuracy.reference import ReferenceFailed
from compiler.bench import cold, timing, turns
from compiler.bench.answers import Answers
from compiler.bench.cold import Cold
from compiler.bench.engines import ENGINES, OTHERS, PLAN, Case, Engine
from compiler.bench.timing import BEST, Timing
from compiler.bench.turns import Times, Turns, time_in_turns
from compiler.cli.tables import bench as bench_table
from compiler.processes.fresh import in_fresh_process

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
twice (float[n] x, float[n] unused) => (float[n] y) { y = Add (x, x) }
"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A model and its plan."""
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "twice.onnx")
    compiler.compile(tmp_path / "twice.onnx").save(tmp_path / "twice.plan")
    return Case("twice", tmp_path / "twice.plan", {"x": X, "unused": X}, tmp_path / "twice.onnx")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_computes_the_model(engine: str, case: Case) -> None:
    pytest.importorskip(ENGINES[engine].package, exc_type=ImportError)
    run = ENGINES[engine].load(case, 1)
    outputs = run()
    assert np.array_equal(outputs["y"], 2 * X)


@pytest.mark.parametrize("engine", OTHERS)
def test_the_refusal_of_an_engine_is_reported(engine: str, case: Case, tmp_path: Path) -> None:
    pytest.importorskip(ENGINES[engine].package, exc_type=ImportError)
    (tmp_path / "twice.onnx").write_bytes(b"not a model")
    found = time_in_turns(case, [engine, PLAN], 1, 0.001)
    assert list(found.times) == [PLAN]
    assert "refuses the model: " in found.failed[engine]


def test_mnn_has_no_time_for_wrong_outputs(tmp_path: Path) -> None:
    """MNN computes 64-bit integers in 32 bits."""
    pytest.importorskip("compiler.bench.mnn", exc_type=ImportError)
    text = """<ir_version: 10, opset_import: ["" : 21]> g (int64[3] x) => (int64[3] y) { y = Mul(x, x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "square.onnx")
    square = Case("square", tmp_path / "square.plan", {"x": np.int64([1, 2, 92682])}, tmp_path / "square.onnx")
    found = time_in_turns(square, ["onnxruntime", "mnn"], 1, 0.001)
    assert list(found.times) == ["onnxruntime"]
    assert found.failed["mnn"].startswith("MNN's output y is wrong by 8.59e+09")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_carries_the_state_of_a_recurrent_layer(engine: str, tmp_path: Path) -> None:
    pytest.importorskip(ENGINES[engine].package, exc_type=ImportError)
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[3, 1, 2] x, float[2, 1, 4] h, float[2, 1, 4] c)
        => (float[3, 2, 1, 4] y, float[2, 1, 4] next_h, float[2, 1, 4] next_c)
        <float[2, 16, 2] w, float[2, 16, 4] r, float[2, 32] b>
        { y, next_h, next_c = LSTM <hidden_size = 4, direction = "bidirectional"> (x, w, r, b, , h, c) }"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.normal(size=size).astype(np.float32)
        for name, size in {"w": (2, 16, 2), "r": (2, 16, 4), "b": (2, 32)}.items()
    }
    del model.graph.initializer[:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(model, tmp_path / "lstm.onnx")
    compiler.compile(tmp_path / "lstm.onnx").save(tmp_path / "lstm.plan")
    sizes = {"x": (3, 1, 2), "h": (2, 1, 4), "c": (2, 1, 4)}
    given = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    lstm = Case("lstm", tmp_path / "lstm.plan", given, tmp_path / "lstm.onnx")
    run = ENGINES[engine].load(lstm, 1)  # MNN's outputs are memory of what `load` returns
    Answers(lstm).check(engine, run())


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        ({"y": 2 * X.reshape(2, 2) + 0.005}, ""),
        ({"y": 2 * X + 0.007}, "E's output y is wrong by 0.007"),
        ({"y": np.where(X == 2, np.nan, 2 * X)}, "E's output y is wrong by inf"),
        ({"y": X[:3]}, "E's output y has shape (3,), not (4,)"),
    ],
    ids=["rounded", "wrong", "NaN", "shape"],
)
def test_outputs_are_checked(outputs: dict[str, np.ndarray], problem: str, case: Case) -> None:
    with pytest.raises(ReferenceFailed, match=re.escape(problem)) if problem else nullcontext():
        Answers(case).check("E", outputs)


def test_outputs_of_a_quantized_model_may_differ_by_its_noise(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(case)
    monkeypatch.setattr(answers, "_unoptimized", {"y": 2 * X + 0.5})
    answers.check("E", {"y": 2 * X + 2})
    with pytest.raises(ReferenceFailed):
        answers.check("E", {"y": 2 * X + 2.1})


def engine_of(log: list[str], name: str, fault: str = "") -> Engine:
    """An engine that writes its name to the log, and is too hot or wrong."""

    def run() -> dict[str, np.ndarray]:
        if fault == "hot":
            raise ReferenceFailed("too hot")
        log.append(name)
        return {"y": 3 * X if fault == "wrong" else 2 * X}

    return Engine(name, "", lambda _case, _threads: run, is_checked=True)


def test_engines_take_turns(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    faults = {"a": "", "b": "hot", "c": "", "d": "wrong"}
    monkeypatch.setattr(turns, "ENGINES", {name: engine_of(log, name, fault) for name, fault in faults.items()})
    monkeypatch.setattr(turns, "TURN", 0.0)
    found = time_in_turns(case, faults, 1, 0.001)
    assert found.failed == {"b": "too hot", "d": "d's output y is wrong by 3"}
    assert [each.runs for each in found.times.values()] == [log.count("a") - 1, log.count("c") - 1]
    assert all(each.runs >= turns.LEAST for each in found.times.values())
    assert log[:3] == ["a", "c", "d"]
    assert log[3:] == ["a", "c"] * (len(log) // 2 - 1)


def test_mnn_is_timed_in_fresh_processes(case: Case) -> None:
    """Its conversion needs a process, which a process of a measurement may not start."""
    pytest.importorskip("compiler.bench.mnn", exc_type=ImportError)
    found = timing.time_case(case, [PLAN, "mnn"], 1, 0.001, processes=2)
    assert set(found.processes[0].times) == {PLAN, "mnn"} and not found.failed


def test_engines_are_prepared_before_their_processes_start(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    prepared = replace(engine_of(log, "mnn"), prepare=lambda each: log.append(f"prepare {each.name}"))
    monkeypatch.setitem(ENGINES, "mnn", prepared)
    monkeypatch.setattr(timing, "in_fresh_process", lambda *_: log.append("process") or process(plan=1.0, mnn=2.0))
    timing.time_case(case, ["mnn"], 1, 0.001, processes=2)
    assert log == [f"prepare {case.name}", "process", "process"]


def process(**milliseconds: float) -> Turns:
    return Turns({name: Times(each, 0.9 * each, 1.3 * each, 5) for name, each in milliseconds.items()}, {})


@pytest.mark.parametrize(
    ("processes", "milliseconds", "ratio", "settled"),
    [
        ([process(plan=1, onnxruntime=2)], 1, 0.5, True),
        ([process(plan=1, onnxruntime=2), process(plan=10, onnxruntime=19)], 5.5, 0.51316, True),
        ([process(plan=1, onnxruntime=2), process(plan=3, onnxruntime=2), process(plan=4, onnxruntime=4)], 3, 1, False),
    ],
    ids=["one", "alike", "bimodal"],
)
def test_processes_are_summed_up_by_medians(
    processes: list[Turns], milliseconds: float, ratio: float, settled: bool
) -> None:
    found = Timing("m", 1, tuple(processes))
    assert found.milliseconds(PLAN) == pytest.approx(milliseconds)
    assert found.spread(PLAN) == pytest.approx(0.2)
    assert found.ratio("onnxruntime") == pytest.approx(ratio, abs=1e-5)
    assert found.is_settled == settled
    assert ("| ≠ " in bench_table.page([found], "", "", {})) != settled


@pytest.mark.parametrize(("second", "count"), [(1.0, 2), (1.5, 4)], ids=["settled", "bimodal"])
def test_more_processes_are_asked_where_they_disagree(
    second: float, count: int, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = [process(plan=each, onnxruntime=1) for each in (1.0, second, 1.0, second)]
    monkeypatch.setattr(timing, "in_fresh_process", lambda *_: scripted.pop(0))
    assert len(timing.time_case(case, [PLAN, "onnxruntime"], 1, 0.001, processes=2).processes) == count


def test_means_are_geometric_and_by_threads() -> None:
    starts = {PLAN: Cold(1, 1, 2), "onnxruntime": Cold(4, 1, 1)}
    timings = [
        Timing("a", 1, (process(plan=1, onnxruntime=2),), starts),
        Timing("b", 1, (process(plan=8, onnxruntime=1, openvino=4),)),
        Timing("a", 2, (process(plan=3, onnxruntime=1),)),
    ]
    assert timing.means(timings) == {
        "onnxruntime": {1: pytest.approx(2), 2: pytest.approx(3)},
        "openvino": {1: pytest.approx(2)},
        BEST: {1: pytest.approx(8)},
    }
    found = {what: timing.cold_means(timings, what)["onnxruntime"][1] for what in ("load", "first", "peak")}
    assert found == {"load": pytest.approx(0.25), "first": pytest.approx(1), "peak": pytest.approx(2)}
    page = bench_table.page(timings, "candlec bench a b", "this machine", {"c": "odd\nmore"})
    assert page.startswith(
        "# Times beside other runtimes\n\n`candlec bench a b`\n\nthis machine. All runtimes take turns"
    )
    assert "| a | 1 | 1.000 ms ± 20% | 2.000 ms ± 20% | 0.50 | – | – | – |" in page
    assert "| b | 1 | 8.000 ms ± 20% | 1.000 ms ± 20% | 8.00 | 4.000 ms ± 20% | 2.00 | 8.00 |" in page
    assert "| a | 1.00 ms | 4.00 ms | – | 0.25 | – |" in page
    assert "1 thread, 2 models: 2.00; worst: 8.00 (b)" in page
    assert "÷ the best of the other runtimes, 1 thread, 1 model: 8.00; worst: 8.00 (b)" in page
    assert page.endswith("- ✗ c: odd\n")


def test_a_cold_start_is_measured_in_a_process_of_its_own(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "PROCESSES", 1)
    found = cold.measure_cold(case, PLAN, 1)
    assert found.load > 0
    assert found.first > 0
    assert found.peak >= cold.PAGE or not cold.STATUS.exists()
    assert found.peak < 100


def test_a_process_of_its_own_gives_results_and_errors() -> None:
    assert in_fresh_process(os.getpid) != os.getpid()
    with pytest.raises(ValueError, match="invalid literal"):
        in_fresh_process(int, "x")


def test_a_cold_start_that_fails_leaves_the_others(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_case: Case, engine: str, _threads: int) -> Cold:
        if engine != PLAN:
            raise ReferenceFailed("too cold")
        return Cold(1, 2, 3)

    monkeypatch.setattr(timing, "measure_cold", measured)
    found = timing.time_case(case, [PLAN, "onnxruntime"], 1, 0.001, cold=True)
    assert found.cold == {PLAN: Cold(1, 2, 3)}
    assert found.data()["engines"][PLAN]["cold"] == {"load": 1, "first": 2, "peak": 3}
