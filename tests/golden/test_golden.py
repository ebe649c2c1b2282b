"""Models in ONNX's text form, and their plans. `make bless` accepts a change.

The folder of `PLANS` is in the Rust crate, whose tests and examples read these plans. `v1.plan` is a plan of version 1.
Every later version must read it. `rows.plan` is one whose rows have different results, `weights.plan` one that keeps
its weights, `state.plan` one with a state, and `custom.plan` one with a custom operator.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler.frontend.load import load_model
from compiler.ir.text import graph_text
from compiler.pipeline import optimize, passes
from compiler.plan.show import show

FOLDER = Path(__file__).parent
PLANS = FOLDER.parents[1] / "runtime/plan/tests/plans"
MODELS = sorted((FOLDER / "models").glob("*.onnxtxt"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    found = show(compiler.compile(onnx.parser.parse_model(path.read_text())))
    expected = path.with_suffix(".plan.txt")
    if os.environ.get("BLESS"):
        expected.write_text(found)
    assert found == expected.read_text(), f"run `make bless` if {expected.name} should change"


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_passes_are_idempotent(path: Path) -> None:
    model = load_model(onnx.parser.parse_model(path.read_text())).model
    options = compiler.Options()
    optimize(model, options)
    before = graph_text(model.graph)
    for step in passes(options):
        step.run(model)
        assert graph_text(model.graph) == before, f"{step.name} changes what it made"


def test_version_1_is_read() -> None:
    plan = compiler.Plan.load(PLANS / "v1.plan")
    with np.load(FOLDER / "v1.npz") as arrays:
        case = dict(arrays)
    session = compiler.load(plan, threads=1)
    outputs = session.run({info.name: case[info.name] for info in session.inputs})
    for info in session.outputs:
        np.testing.assert_allclose(outputs[info.name], case[info.name], rtol=1e-5, atol=1e-5)


def test_the_rows_of_the_plan_for_rust_differ() -> None:
    random, session = np.random.default_rng(0), compiler.load(PLANS / "rows.plan", threads=1)
    inner, outer = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 32), (32, 3)))
    x = random.standard_normal((6, 4)).astype(np.float32)
    found = session.run({"x": x})["y"]
    np.testing.assert_allclose(found, np.maximum(x @ inner, 0) @ outer, rtol=1e-5, atol=1e-5)
    assert len(np.unique(found)) == found.size
    for row, wanted in zip(x, found, strict=True):
        np.testing.assert_array_equal(session.run({"x": row[None]})["y"][0], wanted)
