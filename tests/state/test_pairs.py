"""The pairs of a state: names that exporters write, patterns, and types that fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError, Options, PlanError
from compiler.plan import ops, show
from compiler.plan.plan import StateInfo
from compiler.plan.state import add_state
from compiler.plan.state_names import joined
from compiler.plan.write import with_state
from tests.state.models import PAIRS, cache_model, cache_plan, model_of

NAMES = [
    ("input state sr", "output stateN", "stateN=state"),
    ("mix conv_cache cache", "enh conv_cache_out cache_out", "conv_cache_out=conv_cache cache_out=cache"),
    ("ids past_0 past_1", "logits present_0 present_1", "present_0=past_0 present_1=past_1"),
    ("ids past_key_self_0", "logits present_key_self_0", "present_key_self_0=past_key_self_0"),
    (
        "past_key_values.0.key past_key_values.0.encoder.value",
        "logits present.0.key present.0.encoder.value",
        "present.0.key=past_key_values.0.key present.0.encoder.value=past_key_values.0.encoder.value",
    ),
    ("past_conv.3", "present_conv.3", "present_conv.3=past_conv.3"),
    ("x h0 c0", "y hn cn", "hn=h0 cn=c0"),
    ("x h c", "y hn cn", "hn=h cn=c"),
    ("x cached_key_0", "e new_cached_key_0", "new_cached_key_0=cached_key_0"),
    ("x in_state", "y out_state", "out_state=in_state"),
    ("x state_in", "y state_out", "state_out=state_in"),
    ("input_states_1", "output output_states_1", "output_states_1=input_states_1"),
    ("cache_last_channel", "cache_last_channel_next", "cache_last_channel_next=cache_last_channel"),
    ("att_cache cnn_cache", "r_att_cache r_cnn_cache", "r_att_cache=att_cache r_cnn_cache=cnn_cache"),
    # Nothing says that these are states.
    ("audio", "audio_out", ""),
    ("input", "output", ""),
    ("x", "y", ""),
    ("state", "state2", ""),
    ("input_2 input_3", "activation_2 tf_op_layer_stack_2", ""),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "outputs", "expected"), NAMES, ids=[case[1] for case in NAMES])
def test_names_of_exporters(inputs: str, outputs: str, expected: str) -> None:
    found = joined(inputs.split(), outputs.split())
    assert " ".join(f"{output}={given}" for output, given in found) == expected


def test_each_name_is_in_one_pair() -> None:
    assert list(joined(["h", "h0"], ["hn", "h_out"])) == [("hn", "h0"), ("h_out", "h")]
    assert list(joined(["state"], ["new_state", "state_out"])) == [("new_state", "state")]
    assert list(joined(["x", "cache", "past_cache"], ["present_cache"])) == [("present_cache", "past_cache")]


@pytest.mark.parametrize("asked", ["auto", PAIRS, {"present_*": "past_*", "*_out": "*"}])
def test_a_plan_records_its_pairs(asked: Any) -> None:
    plan = compiler.compile(cache_model(), Options(state=asked))
    assert plan.state == [StateInfo("present_x", "past_x", 2), StateInfo("state_out", "state", None)]
    assert compiler.load(plan).state == plan.state
    assert repr(plan.state[0]) in repr(add_state(compiler.compile(cache_model()), asked).state)


def test_a_plan_without_state_is_as_before() -> None:
    plan = compiler.compile(cache_model())
    assert plan.state == [] and "state" not in plan.document
    assert add_state(plan, "auto").data == cache_plan().data


WRONG = [
    ({"presnt_x": "past_x"}, "there is no output 'presnt_x': did you mean present_x?"),
    ({"present_x": "past"}, "there is no input 'past' for 'present_x'"),
    ({"*_x": "*_y"}, "there is no input 'present_y' for 'present_x'"),
    ({"y": "state"}, "the output 'y' cannot be the input 'state' of the next run: it is float32 ["),
    ({"present_x": "past_x", "state_out": "past_x"}, "the input 'past_x' is in two pairs of the state"),
]


@pytest.mark.parametrize(("asked", "said"), WRONG, ids=[case[1][:40] for case in WRONG])
def test_other_pairs_are_refused(asked: dict[str, str], said: str) -> None:
    with pytest.raises(CompileError) as refused:
        compiler.compile(cache_model(), Options(state=asked))
    assert {each.code for each in refused.value.diagnostics} == {"CC0406"}
    assert any(said in each.message for each in refused.value.diagnostics), refused.value


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(CompileError) as refused:
        compiler.compile(model_of(text), Options(**{"state": "auto", **options}))
    (found,) = refused.value.diagnostics
    assert found.code == "CC0406"
    return found.message


def test_types_have_to_fit() -> None:
    kinds = "(float[2] state) => (double[2] state_out) { state_out = Cast <to = 11> (state) }"
    assert refusal(kinds).endswith("it is float64, and not float32")
    sizes = "(float[2] state) => (float[4] state_out) { state_out = Concat <axis = 0> (state, state) }"
    assert "its dimension 0 has size 4, and not 2" in refusal(sizes)
    strings = "(string[2] state) => (string[2] state_out) { state_out = Identity (state) }"
    assert refusal(strings).endswith("'state_out' is string [2], and not a tensor of numbers")
    lists = "(seq(float[2]) state) => (seq(float[2]) state_out) { state_out = Identity (state) }"
    assert refusal(lists).endswith("is sequence of float32 of any rank, and not a tensor of numbers")
    nothing = "(float[2] x) => (float[2] y) { y = Neg (x) }"
    assert refusal(nothing) == "none of the outputs (y) has a name that fits an input (x)"


def test_a_fixed_size_cannot_grow() -> None:
    with pytest.raises(
        CompileError, match=r"its dimension 2 has size 6, and not 5; keep the symbol of a size that grows"
    ):
        cache_plan(dims={"past": 5, "n": 1})


def test_an_expression_that_never_equals_the_fixed_size() -> None:
    with pytest.raises(CompileError) as refused:
        cache_plan(dims={"past": 5})
    (found,) = refused.value.diagnostics
    assert found.code == "CC0406"
    assert found.message.endswith(
        "has size n + 5, but that of 'past_x' is always 5; keep the symbol of a size that grows"
    )


def test_an_expression_that_can_equal_the_fixed_size() -> None:
    ports = "(float[n] x, float[4] state) => (float[m] y, float[k] state_out)"
    model = model_of(f"{ports} {{ y = Neg (x) state_out = Concat <axis = 0> (x, a) }}", a=np.zeros(3, np.float32))
    plan = compiler.compile(model, Options(state="auto"))
    assert plan.state == [StateInfo("state_out", "state", None)]


GROWTH = [
    ("float[batch, past] state", "Concat <axis = 1> (state, x)", 1),
    ("float[past, 3] state", "Concat <axis = 0> (state, x)", 0),
    ("float[past, 3] state", "Neg (state)", None),
    ("float[batch, other] state", "Concat <axis = 0> (state, state)", None),  # the batch does not grow
    ("float[past, other] state", "Reshape (state, dims)", None),  # nothing is known
]


@pytest.mark.parametrize(("given", "computed", "axis"), GROWTH, ids=[f"{given} {how}" for given, how, _ in GROWTH])
def test_the_axis_that_grows(given: str, computed: str, axis: int | None) -> None:
    ports = f"(float[batch, 3] x, {given}, int64[2] dims) => (float[batch, 3] y, float[?, ?] state_out)"
    model = model_of(f"{ports} {{ y = Neg (x) state_out = {computed} }}")
    assert compiler.compile(model, Options(state="auto")).state == [StateInfo("state_out", "state", axis)]


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        ("all", ValueError, "Options.state: expected \"auto\", or a dict of inputs by output"),
        (["past"], TypeError, "Options.state: expected \"auto\", or a dict"),
        ({"present.*": "past"}, ValueError, "as many stars in 'past' as in 'present.*'"),
        ({"present": 1}, TypeError, "the name of an input, or a pattern, found int"),
    ],
    ids=str,
)  # fmt: skip
def test_options_are_checked(state: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        Options(state=state)
    assert said in str(raised.value)


INVALID = [
    ([(9, 0, None)], "state 0: value 9 is no input of the plan, or in two pairs"),
    ([(0, 99, None)], "state 0: value 99 is no output of the plan, or in two pairs"),
    ([(1, "present_x", 2), (1, "state_out", None)], "state 1: value 1 is no input of the plan, or in two pairs"),
    ([(1, "present_x", 3)], "has the size 4, so it cannot grow"),
    ([(1, "present_x", 4)], "has no axis 4"),
    ([(2, "present_x", None)], "cannot be the input float32 [batch, 4] of the next run"),
]


@pytest.mark.parametrize(("pairs", "said"), INVALID, ids=[case[1] for case in INVALID])
def test_the_runtime_checks_pairs(pairs: list[tuple[int, int | str, int | None]], said: str) -> None:
    plan = compiler.compile(cache_model())
    main = plan.document["main"]
    names = {main["values"][value]["name"]: value for value in main["outputs"]}
    made = [
        ops.StatePair(input=given, output=names[output] if isinstance(output, str) else output, axis=axis)
        for given, output, axis in pairs
    ]
    with pytest.raises(PlanError) as refused:
        compiler.load(compiler.Plan(with_state(plan.data, made)))
    (violation,) = refused.value.violations
    assert said in violation


def test_the_text_of_a_plan_shows_its_state() -> None:
    shown = show(cache_plan()).splitlines()
    assert shown[-2:] == ["state present_x → past_x, growing along axis 2", "state state_out → state"]


MERGED = """(bool[1] cached, float[n, 4] x, float[past, 4] past_own, float[m, 4] past_other)
    => (float[n, 4] y, float[a, 4] present_own, float[b, 4] present_other) {
    y = Identity (x)
    present_own, present_other = If (cached) <
        then_branch = with_cache () => (float[c, 4] own, float[d, 4] other) {
            own = Concat <axis = 0> (past_own, x)
            other = Constant <value = float[0, 4] {}> ()
        },
        else_branch = without () => (float[e, 4] first, float[f, 4] all) {
            first = Relu (x)
            all = Concat <axis = 0> (x, x)
        }
    >
}"""
"""A decoder that two were merged to: with the cache, it does not compute `present_other` again."""


def test_the_branches_of_a_merged_decoder_decide_its_pairs() -> None:
    plan = compiler.compile(model_of(MERGED), Options(state="auto"))
    assert plan.state == [StateInfo("present_own", "past_own", 0)]
    assert add_state(compiler.compile(model_of(MERGED)), "auto").data == plan.data
    session = compiler.load(plan)
    state, rows, other = session.new_state(), np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((1, 4), np.float32)
    for cached, count in ((False, 2), (True, 4), (True, 6)):
        session.run({"cached": np.array([cached]), "x": rows, "past_other": other}, state=state)
        assert state.length == count
    np.testing.assert_array_equal(state.numpy()["past_own"], np.concatenate([rows] * 3))
    with pytest.raises(CompileError, match="'past_other' of the next run: a branch of an If always makes it empty, al"):
        compiler.compile(model_of(MERGED), Options(state={"present_*": "past_*"}))
