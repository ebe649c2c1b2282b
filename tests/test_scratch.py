"""The temporary memory of kernels is bounded, and a lack of it does not end the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import Options, RunError
from tests.scratch_cases import CASES, REFUSED, outcome

ROOT = Path(__file__).parent.parent
SECONDS = 10


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the process is bounded by what Linux tells")
@pytest.mark.parametrize("bound", [0, 64 << 20])
def test_every_operator_ends_in_a_result_or_an_error(bound: int) -> None:
    command = [sys.executable, "-m", "tests.scratch_cases", str(bound)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{lines[-1]} ended the process: {done.stderr[-2000:]}"
    ends = dict(zip(lines[::2], lines[1::2], strict=True))
    slow = {name: seconds for name, (seconds, _) in ends.items() if seconds > SECONDS}
    assert not slow
    assert not [name for name in CASES if ends[name][1] == REFUSED]
    run = [ended for _, ended in ends.values() if ended != REFUSED]
    assert len(run) > 500
    assert run.count("result") > 100


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("Resize")])
def test_axes_are_resized_in_the_cheaper_order(name: str) -> None:
    """The other order would have 4 TB between the axes; the taps of a million places take some 100 MB."""
    assert outcome(*CASES[name], 256 << 20) == "result"


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
    graph, feeds = CASES["Conv, far taps"]
    with pytest.raises(
        RunError, match=r"step 0 Conv.*needs \d+ bytes beside its inputs.*max_memory leaves.*raise"
    ) as error:
        session_of(graph, 64 << 20).run(feeds)
    assert error.value.op == "Conv"


def session_of(graph: str, bound: int | None = None) -> compiler.Session:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> agraph {graph}')
    return compiler.load(compiler.compile(model, Options(max_memory=bound, optimize=False)), threads=2)
