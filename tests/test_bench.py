"""Timing: engines take turns, a failing engine does not stop the others, and the summaries of their times."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler.accuracy.reference import ReferenceFailed
from compiler.bench import cold, timing, turns
from compiler.bench.cold import Cold
from compiler.bench.engines import ENGINES, OTHERS, PLAN, Case, Engine
from compiler.bench.process import in_fresh_process
from compiler.bench.timing import BEST, Timing
from compiler.bench.turns import Times, Turns, time_in_turns
from compiler.cli.tables import bench as bench_table

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
    outputs = ENGINES[engine].load(case, 1)()
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
    mnn = pytest.importorskip("compiler.bench.mnn", exc_type=ImportError)
    text = """<ir_version: 10, opset_import: ["" : 21]> g (int64[3] x) => (int64[3] y) { y = Mul(x, x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "square.onnx")
    with pytest.raises(ReferenceFailed, match="MNN's output y is wrong"):
        mnn.load_mnn(tmp_path / "square.onnx", {"x": np.int64([1, 2, 92682])}, 1)


def engine_of(log: list[str], name: str, fails: bool = False) -> Engine:
    def run() -> None:
        if fails:
            raise ReferenceFailed("too hot")
        log.append(name)

    return Engine("", lambda _case, _threads: run)


def test_engines_take_turns(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(turns, "ENGINES", {name: engine_of(log, name, name == "b") for name in "abc"})
    monkeypatch.setattr(turns, "TURN", 0.0)
    found = time_in_turns(case, "abc", 1, 0.001)
    assert found.failed == {"b": "too hot"}
    assert [each.runs for each in found.times.values()] == [log.count("a") - 1, log.count("c") - 1]
    assert all(each.runs >= turns.LEAST for each in found.times.values())
    assert log[2:] == ["a", "c"] * (len(log) // 2 - 1)


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
    page = bench_table.page(timings, "candlec bench a b", "this machine", {"c": ValueError("odd\nmore")})
    assert page.startswith(
        "# Times beside other runtimes\n\n`candlec bench a b`\n\nthis machine. All runtimes take turns"
    )
    assert "| a | 1 | 1.000 ms ± 20% | 2.000 ms ± 20% | 0.50 | – | – | – |" in page
    assert "| b | 1 | 8.000 ms ± 20% | 1.000 ms ± 20% | 8.00 | 4.000 ms ± 20% | 2.00 | 8.00 |" in page
    assert "| a | 1.00 ms | 4.00 ms | – | 0.25 | – |" in page
    assert "1 thread, 2 models: 2.00; worst: 8.00 (b)" in page
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
