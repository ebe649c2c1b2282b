"""The profile of steps: their time, their work, and the comparison with the machine's peaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx.parser
import pytest

import compiler
from compiler.accuracy.random_inputs import random_inputs
from compiler.bench import peaks
from compiler.cli.tables import profile as profile_table
from compiler.runtime.steps import Peaks, StepTime

RUNS = 3
WORK = [  # inputs, body, op, multiplications and additions, bytes
    (
        "float[1, 4, 8, 8] x, float[6, 2, 3, 3] w, float[6] b",
        "y = Conv <group = 2, strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, b)",
        "Conv",
        2 * (6 * 4 * 4) * (2 * 3 * 3),
        4 * (4 * 8 * 8 + 6 * 2 * 3 * 3 + 6 + 6 * 4 * 4),
    ),
    (
        "float[1, 4, 8] x, float[4, 3, 4] w",
        "y = ConvTranspose <strides = [2], pads = [1, 1]> (x, w)",
        "ConvTranspose",
        2 * (4 * 8) * (3 * 4),
        4 * (4 * 8 + 4 * 3 * 4 + 3 * 16),
    ),
    ("float[5, 2, 3] a, float[3, 4] b", "y = MatMul (a, b)", "MatMul", 2 * 5 * 2 * 3 * 4, 4 * (30 + 12 + 40)),
    (
        "float[3, 2] a, float[4, 3] b, float[4] c",
        "y = Gemm <transA = 1, transB = 1> (a, b, c)",
        "Gemm",
        2 * 2 * 3 * 4,
        4 * (6 + 12 + 4 + 8),
    ),
    (
        "uint8[2, 3] a, int8[3, 4] b",
        "y = MatMulInteger (a, b)",
        "MatMulInteger",
        2 * 2 * 3 * 4,
        6 + 12 + 4 * 8,
    ),
    (
        "float[7, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r",
        "y = LSTM <hidden_size = 4> (x, w, r)",
        "Lstm",
        2 * 7 * 2 * (16 * 3 + 16 * 4),
        None,
    ),
    (
        "float[1, 2, 5, 4] q, float[1, 2, 6, 4] k, float[1, 2, 6, 3] v",
        "y = Attention (q, k, v)",
        "Attention",
        2 * 2 * 5 * 6 * (4 + 3),
        4 * (40 + 48 + 36 + 30),
    ),
    ("float[100, 4] x, int64[3] i", "y = Gather (x, i)", "Gather", 0, 2 * 4 * 12),
    ("float[10] x", "y = Relu (x)", "Unary", 0, 4 * 20),
    ("float[2, 6] x, int64[2] s", "y = Reshape (x, s)", "Reshape", None, None),
]


@pytest.mark.parametrize(("inputs", "body", "op", "operations", "moved"), WORK, ids=[row[2] for row in WORK])
def test_a_step_states_its_work(inputs: str, body: str, op: str, operations: int | None, moved: int | None) -> None:
    output = "int32 y" if "Integer" in body else "float y"
    text = f'<ir_version: 10, opset_import: ["": 23]> m ({inputs}) => ({output}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = compiler.load(compiler.compile(model))
    given = random_inputs(session.inputs, {})
    if "s" in given:
        given["s"][:] = [4, 3]
    (step,) = [step for step in session.profile(given, RUNS) if step.op == op]
    assert step.calls == RUNS
    assert step.operations == (None if operations is None else RUNS * operations)
    if moved is not None:
        assert step.bytes == RUNS * moved


def test_sizes_are_those_of_the_run_and_blocks_count_every_call() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    m (float[n] x, int64 count) => (float[n] y) {
        keep = Constant <value = bool {1}> ()
        y = Loop (count, keep, x) <body = step (int64 i, bool go, float[n] s) => (bool on, float[n] t) {
            on = Identity (go)  t = Exp (s)
        }>
    }"""
    session = compiler.load(compiler.compile(onnx.parser.parse_model(text)))
    given = random_inputs(session.inputs, {"n": 5})
    given["count"][...] = 4
    whole, *inner = session.profile(given, RUNS)
    assert (whole.op, whole.operations, whole.bytes) == ("Loop", None, None)
    (step,) = [step for step in inner if step.op != "Identity"]
    assert (step.calls, step.bytes) == (4 * RUNS, 4 * RUNS * 2 * 4 * 5)


STEP = StepTime("Conv", "here", 0, 10, 1.0, 4_000_000_000, 1_000_000_000)
PEAKS = Peaks(operations=8e9, bytes=4e9)


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (STEP, ["100.000", "50%", "4.0", "1.0", "50% arithmetic"]),
        (replace(STEP, operations=0), ["100.000", "50%", "", "1.0", "25% memory"]),
        (replace(STEP, operations=None, bytes=None), ["100.000", "50%", "", "", ""]),
        (replace(STEP, calls=0, seconds=0.0), ["0.000", "0%", "", "", ""]),
    ],
    ids=["arithmetic", "memory", "unknown", "not run"],
)
def test_a_step_is_compared_with_what_bounds_it(step: StepTime, shown: list[str]) -> None:
    assert profile_table.speed([step], 2.0, PEAKS, 10) == shown


class Measured:
    """A session whose peaks tell how often they were measured."""

    def __init__(self) -> None:
        self.count, self.threads = 0, 1

    def peaks(self) -> Peaks:
        self.count += 1
        return Peaks(1e9 * self.count, 2e9)


def test_peaks_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    session, found = Measured(), []
    for session.threads in (1, 2, 1, 2):
        found.append(peaks.peaks_of(session).operations)
    assert found == [1e9, 2e9, 1e9, 2e9]
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    assert peaks.peaks_of(session).operations == 3e9
    file = peaks.cache_file()
    assert file is not None and file.is_relative_to(tmp_path)


@pytest.mark.parametrize(
    "number", ["0", "-1e9", "NaN", "Infinity", "1e400", "1" + "0" * 400, "null", '"fast"', "[" * 9999]
)
def test_peaks_that_cannot_be_are_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    session = Measured()
    peaks.peaks_of(session)
    file = peaks.cache_file()
    assert file is not None
    file.write_text(file.read_text().replace("2000000000.0", number))
    assert [peaks.peaks_of(session).operations for _ in range(2)] == [2e9, 2e9]


def test_peaks_are_kept_nowhere_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    session = Measured()
    assert [peaks.peaks_of(session).operations for _ in range(2)] == [1e9, 2e9]


def test_a_session_measures_peaks() -> None:
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]> m (float x) => (float y) { y = Exp (x) }')
    found = compiler.load(compiler.compile(model), threads=1).peaks()
    assert found.operations > 1e6 and found.bytes > 1e6, "a second"
