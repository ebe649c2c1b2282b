"""States of merged decoders, which choose between a branch for the prompt and one for later tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import Options, RunError
from compiler.plan.plan import StateInfo
from compiler.runtime.state import State
from tests.state.models import Array, assert_same, fed_back, merged_decoder

PAIRS = {f"present_{part}": f"past_{part}" for part in ("key", "value")}
HEADS, SIZE = 3, 8

TEXT = merged_decoder(HEADS, SIZE)


def plan_of(text: str = TEXT, **options: Any) -> compiler.Plan:
    return compiler.compile(onnx.parser.parse_model(text), Options(state="auto", **options))


def step(rows: int, seed: int, later: bool = True, pick: int = 1) -> dict[str, Array]:
    drawn = np.random.default_rng(seed).standard_normal((3, 1, HEADS, rows, SIZE), np.float32)
    return {**dict(zip("qkv", drawn, strict=True)), "use_cache_branch": np.array([later]), "pick": np.array([pick])}


FIRST = {name: np.zeros((1, HEADS, 0, SIZE), np.float32) for name in PAIRS.values()}
STEPS = [step(5, 0, later=False), *(step(1, seed) for seed in range(1, 5)), step(3, 6), step(1, 7)]


@pytest.fixture(params=[None, 1 << 20], ids=["unbounded", "bounded"])
def session(request: pytest.FixtureRequest, device: str) -> compiler.Session:
    return compiler.load(plan_of(), device, threads=2, max_memory=request.param)


def check(session: compiler.Session, state: State, steps: list[dict[str, Array]], first: Any) -> None:
    for given, wanted in zip(steps, fed_back(session, PAIRS, first, steps), strict=True):
        assert_same(session.run(given, state=state), {"z": wanted["z"]})
        assert_same(state.numpy(), {target: wanted[source] for source, target in PAIRS.items()})


def test_caches_grow_in_a_branch(session: compiler.Session) -> None:
    assert session.state == [StateInfo(source, target, 2) for source, target in PAIRS.items()]
    assert [(pair.in_place, pair.copies) for pair in session.prepared().state] == [(True, [])] * 2
    state = session.new_state()
    check(session, state, STEPS, FIRST)
    assert state.length == 13
    # A new prompt replaces the caches.
    check(session, state, [step(2, 8, later=False), step(1, 9)], state.numpy())
    assert state.length == 3


def test_forks_do_not_see_each_other(session: compiler.Session) -> None:
    state = session.new_state()
    for each in STEPS[:3]:
        session.run(each, state=state)
    fork, held = state.copy(), state.numpy()
    check(session, state, [step(1, 20), step(1, 21)], held)
    check(session, fork, [step(1, 30), step(2, 31)], held)
    state.truncate(6)
    other = state.copy()
    check(session, state, [step(1, 40)], other.numpy())
    assert_same(other.numpy(), {name: value[:, :, :6] for name, value in held.items()})


@pytest.mark.parametrize("later", [True, False])
def test_a_failed_run_changes_nothing(session: compiler.Session, later: bool) -> None:
    state = session.new_state()
    for each in STEPS[:4]:
        session.run(each, state=state)
    held = state.numpy()
    with pytest.raises(RunError, match="out of range"):
        session.run(step(1, 50, later, pick=9), state=state)
    assert_same(state.numpy(), held)
    check(session, state, [step(1, 51)], held)


def test_a_profile_leaves_the_state_as_it_was(session: compiler.Session) -> None:
    state = session.new_state()
    with pytest.raises(compiler.InputError, match="the state holds the input 'past_key'"):
        session.profile({**STEPS[0], **FIRST}, 1, state=state)
    session.profile(STEPS[0], 1, state=state)
    assert state.length == 0 and state.nbytes == 0
    for each in STEPS[:3]:
        session.run(each, state=state)
    held = state.numpy()
    times = session.profile(STEPS[3], 3, state=state)
    written = [each for each in times if each.op == "Concat"]
    assert [(each.calls, each.depth) for each in written] == [(3, 1)] * 2
    assert {each.bytes for each in written} == {3 * 2 * 4 * HEADS * SIZE}, "they write one row, not the caches"
    assert_same(state.numpy(), held)
    with pytest.raises(RunError, match="out of range"):
        session.profile(step(1, 50, pick=9), 1, state=state)
    assert_same(state.numpy(), held)


def test_a_branch_that_reads_the_past_gets_it(device: str) -> None:
    """The caches are then copied in each run, as in feeding back by hand."""
    text = TEXT.replace("e = Neg (k)", "s = ReduceMean <keepdims = 1> (past_key)  e = Add (k, s)")
    session = compiler.load(plan_of(text, optimize=False), device, threads=1)
    assert [pair.in_place for pair in session.prepared().state] == [False, True]
    state = session.new_state({name: np.ones((1, HEADS, 2, SIZE), np.float32) for name in PAIRS.values()})
    check(session, state, [step(1, 60), step(4, 61, later=False), step(1, 62)], state.numpy())
