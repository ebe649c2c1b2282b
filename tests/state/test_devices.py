"""States of sessions on a GPU: the values stay on the GPU, and equal those of runs that feed outputs back by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import Options, RunError
from tests.state.models import STEPS, assert_same, cache_plan, expected, model_of, rows

Commands = list[dict[str, Any]]


@pytest.mark.parametrize("options", [{}, {"max_memory": 1 << 20}], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("device_outputs", [False, True], ids=["host", "device"])
def test_runs_equal_feeding_back_by_hand(gpu: str, options: dict[str, Any], device_outputs: bool) -> None:
    session = compiler.load(cache_plan(**options), gpu, threads=1)
    state = session.new_state()
    for at, (given, wanted) in enumerate(zip(STEPS, expected(session, STEPS), strict=True)):
        names = ["y", "present_x"] if at % 2 else None
        found = session.run(given, names, state=state, device_outputs=device_outputs)
        assert_same(found, {name: wanted[name] for name in names or ["y"]})
    assert_same(state.numpy(), {"past_x": wanted["present_x"], "state": wanted["state_out"]})
    assert (state.length, state.nbytes) == (16, 4 * (2 * 16 * 4 + 4))


def test_forks_on_a_gpu(gpu: str) -> None:
    session = compiler.load(cache_plan(), gpu, threads=1)
    state = session.new_state()
    session.run(STEPS[0], state=state)
    fork = state.copy()
    for number, each in ((1, state), (2, fork)):
        wanted = expected(session, [STEPS[0], rows(number)])[1]
        assert_same(session.run(rows(number), state=each), {"y": wanted["y"]})


def test_a_state_on_a_gpu_is_cut_and_saved(gpu: str, tmp_path: Any) -> None:
    text = """(float[2, n] x, float[2, past] past_x) => (float[2, total] y, float[2, total] present_x) {
        present_x = Concat <axis = 1> (past_x, x) y = Neg (present_x)
    }"""
    plan = compiler.compile(model_of(text), Options(state="auto"))
    session = compiler.load(plan, gpu, threads=1)
    state, x = session.new_state(), np.arange(10, dtype=np.float32).reshape(2, 5)
    session.run({"x": x}, state=state)
    state.truncate(3)
    assert_same(state.numpy(), {"past_x": x[:, :3]})
    state.save(tmp_path / "state.safetensors")
    there, here = session.new_state(), compiler.load(plan, threads=1).new_state()
    for each in (there, here):
        each.load(tmp_path / "state.safetensors")
    found = session.run({"x": x[:, 3:]}, state=there)
    assert_same(found, {"y": -x})
    with pytest.raises(ValueError, match="the state belongs to another device: save it, and load it"):
        session.run({"x": x}, state=here)


def test_a_run_that_fails_on_a_gpu_changes_nothing(gpu: str) -> None:
    text = """(float[n] x, int64[1] at, float[past] past_x) => (float[1] y, float[total] present_x) {
        present_x = Concat <axis = 0> (past_x, x) y = Gather (present_x, at)
    }"""
    session = compiler.load(compiler.compile(model_of(text), Options(state="auto")), gpu, threads=1)
    state, x = session.new_state(), np.arange(3, dtype=np.float32)
    session.run({"x": x, "at": np.array([2])}, state=state)
    with pytest.raises(RunError, match="Gather"):
        session.run({"x": x, "at": np.array([6])}, state=state)
    assert_same(state.numpy(), {"past_x": x})
