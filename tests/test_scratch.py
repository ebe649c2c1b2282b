"""The temporary memory of kernels is bounded, and a lack of it does not end the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import RunError, _runtime
from compiler.cli.ops import _operators
from compiler.plan.operators import counted
from tests.scratch.cases import CASES, REFUSED, Case, plan_of
from tests.scratch.table import ROWS

ROOT = Path(__file__).parent.parent
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells and limits the memory of a process")

ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
"""The C library reserves 64 MiB of addresses for each thread otherwise, and the limit of a process counts them."""


def reports(module: str, *arguments: object) -> list[Any]:
    """The output lines of a process. If the process ends early, an error names its last case."""
    command = [sys.executable, "-m", f"tests.scratch.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | ONE_ARENA)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{lines[-1:]} ended the process: {done.stderr[-2000:]}"
    return lines


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("bound", [0, 64 << 20])
def test_every_operator_ends_in_a_result_or_an_error(bound: int) -> None:
    lines = reports("cases", bound)
    ends = dict(zip(lines[::2], lines[1::2], strict=True))
    assert not [name for name, ended in ends.items() if ended == REFUSED]
    assert list(ends.values()).count("result") > 1000


@LINUX
@pytest.mark.slow
def test_every_written_case_ends_on_the_emulator() -> None:
    pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    lines = reports("cases", 64 << 20, "emulator")
    ends = dict(zip(lines[::2], lines[1::2], strict=True))
    assert not [name for name, ended in ends.items() if ended == REFUSED]
    assert list(ends.values()).count("result") > 15


@LINUX
@pytest.mark.slow
def test_no_process_grows_beyond_the_limit() -> None:
    """Without the limit, each process grows by `BEYOND` more than that, or the limit is the size of the inputs."""
    with ThreadPoolExecutor() as pool:
        parts = pool.map(lambda part: reports("growth", "--part", part, 2), range(2))
        lines = [line for part in parts for line in part]
    assert not [line for line in lines if line["outcome"] != "result"]
    assert not [line for line in lines if not line["is_bounded"]]
    assert len(lines) == len(ROWS)


NOT_RUN = {
    "Custom": "a function of the program computes it",
    "Raise": "it computes nothing, and ends every run that reaches it",
}
"""Operators of the runtime without rows, and the reasons."""


@pytest.mark.slow
def test_every_operator_of_the_runtime_is_run() -> None:
    plans = [row.plan(row.feeds({}) if row.constants else {})[0] for row in ROWS]
    found = {name for plan in plans for name in counted(plan.document["main"])}
    every = {name for _, name, _ in json.loads(_runtime.ops())}
    missing = sorted(every - found - NOT_RUN.keys())
    assert not missing, f"add rows whose plans have these operators to SCRATCH in tests/lower/: {missing}"
    assert not found & NOT_RUN.keys(), "remove these operators from NOT_RUN, because rows run them"


def test_every_operator_is_run() -> None:
    """An expansion consists of operators that have rows."""
    graphs = [onnx.parser.parse_model(row.graph).graph for row in ROWS]
    found = {(node.domain or "ai.onnx", node.op_type) for graph in graphs for node in graph.node}
    kernels = [row for row in _operators() if not row[2].startswith("contrib/")]
    missing = [f"{domain}.{name}" for name, _, _, domain in kernels if (domain, name) not in found]
    assert not missing, f"add a row for each of these operators to SCRATCH in the test file of its family: {missing}"


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("Resize")])
def test_axes_are_resized_in_the_cheaper_order(name: str) -> None:
    """In the other order, the intermediate result would have 4 TB. The taps of a million positions need 100 MB."""
    graph, feeds = CASES[name]
    assert Case(name, lambda: plan_of(graph, 256 << 20), feeds).outcome() == "result"


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(200, 3), (3, 200)])
def test_the_order_of_axes_changes_no_result(mode: str, sizes: tuple[int, int]) -> None:
    graph = f'(float[1, 2, 20, 30] x, int64[4] s) => (float[a, b, c, d] y) {{ y = Resize<mode = "{mode}">(x, , , s) }}'
    turned = "(float[1, 2, 20, 30] x, int64[4] s) => (float[a, b, c, d] y) { t = Transpose<perm = [0, 1, 3, 2]>(x)"
    turned += f' u = Resize<mode = "{mode}">(t, , , s) y = Transpose<perm = [0, 1, 3, 2]>(u) }}'
    x = np.random.default_rng(0).standard_normal((1, 2, 20, 30), np.float32)
    found = session_of(graph).run({"x": x, "s": np.array([1, 2, *sizes])})["y"]
    expected = session_of(turned).run({"x": x, "s": np.array([1, 2, *reversed(sizes)])})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_an_error_names_the_step_and_what_it_needs() -> None:
    graph, feeds = CASES["MaxPool, far taps"]
    with pytest.raises(
        RunError, match=r"step 0 MaxPool.*needs \d+ bytes beside its inputs.*max_memory leaves.*raise"
    ) as error:
        compiler.load(plan_of(graph, 64 << 20), threads=2).run(feeds)
    assert error.value.op == "MaxPool"


def session_of(graph: str) -> compiler.Session:
    return compiler.load(plan_of(graph, None), threads=2)
