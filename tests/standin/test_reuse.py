"""A run on a GPU keeps freed memory for its later steps, and gives it back at its end."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import Options
from tests.standin.device import CONFIGURATION, StandIn

STEPS = 9


@pytest.fixture
def plan() -> compiler.Plan:
    """A chain of transpositions."""
    names = ["x", *(f"v{i}" for i in range(1, STEPS)), "y"]
    steps = "\n".join(f"{after} = Transpose({before})" for before, after in itertools.pairwise(names))
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> chain (float[n, 1024] x) => (float[1024, n] y) {{ {steps} }}'
    )
    return compiler.compile(model, Options(optimize=False))


def counted(plan: compiler.Plan, standin: StandIn, rows: int) -> list[int]:
    """The numbers of launches, allocations and frees of a session's second run."""
    there, here = (compiler.load(plan, device=device, threads=1) for device in ("cuda", "cpu"))
    x = np.random.default_rng(0).standard_normal((rows, 1024), np.float32)
    there.run({"x": x})
    standin.configure(CONFIGURATION)
    found = there.run({"x": x})["y"]
    calls = standin.calls()
    np.testing.assert_array_equal(found, here.run({"x": x})["y"])
    return [calls.get(name, 0) for name in ("cuLaunchKernel", "cuMemAllocFromPoolAsync", "cuMemFreeAsync")]


def test_steps_use_memory_that_earlier_steps_have_freed(plan: compiler.Plan, standin: StandIn) -> None:
    for rows in (3, 5, 3):
        launches, allocations, frees = counted(plan, standin, rows)
        assert launches == STEPS
        assert allocations <= 3
        assert frees == allocations, "a run keeps memory after its end"


def test_a_run_does_not_keep_large_blocks(plan: compiler.Plan, standin: StandIn) -> None:
    _, allocations, frees = counted(plan, standin, 1025)  # more than 4 MiB
    assert allocations > STEPS / 2
    assert frees == allocations
