"""Custom operators of plans on a GPU: their steps run on the host."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import compiler
from compiler import DeviceError, RunError
from compiler.runtime.steps import placed_steps
from tests.custom_ops.models import Array, like, plan_of, register_double

GRAPH = "(float[n, 2] x) => (float[n, 2] y) { a = Relu (x) b = own.Double (a) y = Tanh (b) }"
X = np.array([[1, -2], [0.5, 3]], np.float32)


def test_the_placement_of_steps_needs_no_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    register_double()
    plan = plan_of(GRAPH)
    monkeypatch.setattr(compiler.custom, "_REGISTERED", {})
    assert [(step.op, step.host) for step in placed_steps(plan)] == [
        ("Unary", None),
        ("Custom", "no_kernel"),
        ("Unary", None),
    ]


@pytest.fixture
def emulator() -> str:
    if importlib.util.find_spec("compiler._runtime_emulator") is None:
        pytest.skip("the emulator is not built: `make emulator`")
    return "emulator"


def test_a_step_runs_on_the_host(emulator: str) -> None:
    seen = []

    @compiler.custom_op("own::Double", like)
    def double(x: Array) -> Array:
        seen.append(type(x))
        return 2 * x

    session = compiler.load(plan_of(GRAPH), emulator)
    found = session.run({"x": X})["y"]
    np.testing.assert_allclose(found, np.tanh(2 * np.maximum(X, 0)), rtol=1e-6, atol=0)
    assert seen == [np.ndarray]
    assert [step.op for step in session.host_steps] == ["Custom"]
    with pytest.raises(DeviceError, match="Custom"):
        compiler.load(plan_of(GRAPH), emulator, strict_device=True)


def test_wrong_results_and_nested_runs(emulator: str) -> None:
    register_double()
    inner = compiler.load(plan_of(GRAPH), emulator)
    compiler.custom_op("own::Double", like)(lambda x: inner.run({"x": x})["y"] if len(x) < 3 else x[0])
    session = compiler.load(plan_of(GRAPH), emulator)
    expected = np.tanh(np.tanh(2 * np.maximum(X, 0)))
    np.testing.assert_allclose(session.run({"x": X})["y"], expected, rtol=1e-6, atol=0)
    with pytest.raises(RunError, match="expected float32 \\[n, 2\\], found float32 \\[2\\]"):
        session.run({"x": np.ones((3, 2), np.float32)})
    np.testing.assert_allclose(session.run({"x": X})["y"], expected, rtol=1e-6, atol=0)
