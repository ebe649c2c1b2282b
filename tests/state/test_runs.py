"""Runs with a state: they equal runs that feed outputs back by hand, and a run that fails changes nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import InputError, Options, RunError
from tests.running import SOON
from tests.state.models import FIRST, STEPS, assert_same, cache_model, cache_plan, expected, fed_back, model_of, rows


@pytest.fixture(scope="module")
def session() -> compiler.Session:
    return compiler.load(cache_plan(), threads=2)


@pytest.mark.parametrize("options", [{}, {"optimize": False}], ids=["optimized", "plain"])
def test_runs_equal_feeding_back_by_hand(options: dict[str, Any]) -> None:
    session = compiler.load(cache_plan(**options), threads=1)
    state = session.new_state()
    for given, wanted in zip(STEPS, expected(session, STEPS), strict=True):
        assert_same(session.run(given, state=state), {"y": wanted["y"]})
        assert_same(state.numpy(), {"past_x": wanted["present_x"], "state": wanted["state_out"]})
    assert (state.length, state.nbytes) == (16, 4 * (2 * 16 * 4 + 4))
    assert repr(state) == f"State(length 16, {state.nbytes} bytes)"


def test_outputs_of_the_state_are_results_if_asked_for(session: compiler.Session) -> None:
    state = session.new_state()
    for given, wanted in zip(STEPS, expected(session, STEPS), strict=True):
        names = ["present_x", "y"] if given["x"].shape[2] == 1 else ["state_out"]
        found = session.run(given, names, state=state)
        assert_same(found, {name: wanted[name] for name in names})
        for value in found.values():
            value[...] = 7  # it belongs to the caller
    assert_same(state.numpy(), {"past_x": wanted["present_x"], "state": wanted["state_out"]})
    assert session.run(rows(1), [], state=state) == {}
    assert state.length == 17


def test_forks_and_earlier_states(session: compiler.Session) -> None:
    state = session.new_state()
    session.run(STEPS[0], state=state)
    fork = state.copy()
    one, other = session.run(rows(1), state=state), session.run(rows(2), state=fork)
    wanted = expected(session, [STEPS[0], rows(1)]), expected(session, [STEPS[0], rows(2)])
    assert_same(one, {"y": wanted[0][1]["y"]})
    assert_same(other, {"y": wanted[1][1]["y"]})
    state.reset()
    assert (state.length, state.nbytes) == (0, 0)
    assert_same(session.run(STEPS[0], state=state), {"y": wanted[0][0]["y"]})


def test_a_run_that_fails_changes_nothing() -> None:
    text = """(float[n] x, int64[1] at, float[past] past_x) => (float[1] y, float[total] present_x) {
        present_x = Concat <axis = 0> (past_x, x) y = Gather (present_x, at)
    }"""
    session = compiler.load(compiler.compile(model_of(text), Options(state="auto")))
    state = session.new_state()
    x = np.arange(3, dtype=np.float32)
    session.run({"x": x, "at": np.array([2])}, state=state)
    with pytest.raises(RunError, match="Gather"):
        session.run({"x": x, "at": np.array([6])}, state=state)
    with pytest.raises(InputError, match="missing"):
        session.run({"x": x}, state=state)
    assert_same(state.numpy(), {"past_x": x})
    assert session.run({"x": x, "at": np.array([5])}, state=state)["y"] == 2


def test_a_buffer_of_fixed_size() -> None:
    text = """<ir_version: 13, opset_import: ["": 24]>
    m (float[1, 2, 1, 4] x, int64[1] at, float[1, 2, 8, 4] past_x)
    => (float[1, 2, 8, 4] y, float[1, 2, 8, 4] present_x) {
        present_x = TensorScatter (past_x, x, at)
        y = Neg (present_x)
    }"""
    plan = compiler.compile(onnx.parser.parse_model(text), Options(state="auto"))
    session = compiler.load(plan, threads=1)
    steps = [{**rows(step), "at": np.array([step])} for step in range(8)]
    first = {"past_x": np.zeros((1, 2, 8, 4), np.float32)}
    state = session.new_state()
    for given, wanted in zip(steps, fed_back(session, {"present_x": "past_x"}, first, steps), strict=True):
        assert_same(session.run(given, state=state), {"y": wanted["y"]})
    assert (state.length, state.nbytes) == (None, 256)


ENDLESS = """(float[64, 64] state) => (float[64, 64] state_out) {
    state_out = Loop (count, go, state) <body = each (int64 at, bool before, float[64, 64] v)
        => (bool after, float[64, 64] w) { after = Identity (before) q = MatMul (v, v) w = Tanh (q) }>
}"""


def test_a_run_that_ends_early_changes_nothing() -> None:
    model = model_of(ENDLESS, count=np.int64(2**62), go=np.bool_(True))
    session = compiler.load(compiler.compile(model, Options(state="auto")), threads=1)
    first = {"state": np.ones((64, 64), np.float32)}
    state = session.new_state(first)
    with pytest.raises(TimeoutError):
        session.run({}, state=state, timeout=0.01)
    cancel = session.new_cancel()
    ended = []

    def run() -> None:
        with pytest.raises(RuntimeError) as error:
            session.run({}, state=state, cancel=cancel)
        ended.append(str(error.value))

    thread = threading.Thread(target=run)
    thread.start()
    while True:  # until the run has begun
        try:
            state.numpy()
        except RuntimeError as error:
            assert str(error) == "another thread uses the state: give each thread a state of its own"
            break
    with pytest.raises(RuntimeError, match="another thread uses the state"):
        session.run({}, state=state)
    cancel.set()
    thread.join(SOON)
    assert ended == ["the run was canceled"]
    assert_same(state.numpy(), first)


def test_states_belong_to_a_plan(session: compiler.Session) -> None:
    other = compiler.load(cache_plan(optimize=False), threads=1)
    with pytest.raises(ValueError, match="the state belongs to another plan: make one with this session"):
        other.run(rows(0), state=session.new_state())
    with pytest.raises(TypeError, match="state: expected a state that new_state made, found dict"):
        session.run(rows(0), state={})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the plan has no state: compile the model"):
        compiler.load(compiler.compile(cache_model())).new_state()


def test_sessions_of_one_plan_share_states(session: compiler.Session) -> None:
    state, wanted = session.new_state(), expected(session, STEPS)
    sessions = [session, session.clone(threads=1), compiler.load(cache_plan(), threads=1)]
    for at, given in enumerate(STEPS):
        assert_same(sessions[at % 3].run(given, state=state), {"y": wanted[at]["y"]})


def test_many_states_go_on_at_once(session: compiler.Session) -> None:
    count, found = 6, dict[int, list[dict[str, Any]]]()

    def work(number: int) -> None:
        state = session.new_state()
        found[number] = [session.run(rows(number * 100 + step, 1 + step % 2), state=state) for step in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    for number in range(count):
        wanted = expected(session, [rows(number * 100 + step, 1 + step % 2) for step in range(20)])
        for one, other in zip(found[number], wanted, strict=True):
            assert_same(one, {"y": other["y"]})


def test_inputs_of_the_state_are_not_given(session: compiler.Session) -> None:
    state = session.new_state()
    with pytest.raises(InputError, match="the state holds the input 'past_x': leave it out, or give it to new_state"):
        session.run({**rows(0), "past_x": FIRST["past_x"]}, state=state)
    with pytest.raises(InputError, match="there is no input 'z'; the only input is x"):
        session.run({**rows(0), "z": 1}, state=state)
    with pytest.raises(InputError, match=r"input 'x': expected float32 \[batch, heads, n, 4\], found float64"):
        session.run({"x": np.zeros((1, 2, 1, 4))}, state=state)
    assert state.length == 0
    assert_same({"y": session(rows(0)["x"], state=state)}, {"y": expected(session, [rows(0)])[0]["y"]})
    with pytest.raises(TypeError, match="a run with a state takes 1 input, found 2"):
        session(rows(0)["x"], rows(0)["x"], state=state)
    # Without a state, the run has all inputs and outputs.
    assert list(session.run({**rows(0), **FIRST})) == ["y", "present_x", "state_out"]


def test_other_sizes_in_a_later_run_are_refused(session: compiler.Session) -> None:
    state = session.new_state()
    session.run(rows(0, batch=2), state=state)
    with pytest.raises(InputError, match="with batch = 3"):
        session.run(rows(0, batch=3), state=state)
    assert state.numpy()["state"].shape == (2, 4)


def test_an_output_that_does_not_fit_is_refused() -> None:
    # The file declares no size for the output, and a run finds another one.
    plan = compiler.compile(
        model_of("(int64[1] n, float[1] state) => (float[?] state_out) { state_out = Expand (state, n) }"),
        Options(state="auto"),
    )
    session = compiler.load(plan)
    state = session.new_state({"state": np.ones(1, np.float32)})
    session.run({"n": np.array([1])}, state=state)
    with pytest.raises(InputError, match=r"found float32 \[3\] as the output \"state_out\" of the run before it"):
        session.run({"n": np.array([3])}, state=state)
    assert_same(state.numpy(), {"state": np.ones(1, np.float32)})


def test_places_of_outputs(session: compiler.Session) -> None:
    state, y = session.new_state(), np.empty((1, 2, 5, 5), np.float32)
    assert session.run(STEPS[0], state=state, out={"y": y})["y"] is y
    with pytest.raises(ValueError, match="out: expected some of y, found 'present_x'"):
        session.run(STEPS[0], state=state, out={"present_x": y})
    assert state.length == 5


def test_states_of_asyncio(session: compiler.Session) -> None:
    async def stream(number: int) -> list[dict[str, Any]]:
        state = session.new_state()
        return [await session.run_async(rows(number + step), state=state) for step in range(5)]

    async def main() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(stream(number) for number in (0, 50)))

    for number, found in zip((0, 50), asyncio.run(main()), strict=True):
        for one, other in zip(found, expected(session, [rows(number + step) for step in range(5)]), strict=True):
            assert_same(one, {"y": other["y"]})


def test_prepare_says_which_values_change_in_place() -> None:
    def pairs(**options: Any) -> list[tuple[str, str, bool, list[str]]]:
        found = compiler.load(cache_plan(**options)).prepared()
        ops = {step.index: step.op for step in found.steps}
        return [(pair.output, pair.input, pair.in_place, [ops[at] for at in pair.copies]) for pair in found.state]

    mean = ("state_out", "state", False, [])
    assert pairs() == [("present_x", "past_x", True, []), mean]
    assert pairs(optimize=False) == [("present_x", "past_x", True, ["Transpose"]), mean]
    assert pairs(max_memory=1 << 20) == pairs()
