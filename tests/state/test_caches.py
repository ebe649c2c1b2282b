"""States of models whose operators keep a cache: GroupQueryAttention with caches that grow and with shared buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import compiler
from compiler import Options, RunError
from compiler.plan.plan import StateInfo
from compiler.runtime.state import State
from tests.state.models import Array, assert_same, fed_back

HEADS, KV_HEADS, SIZE, BUFFER = 4, 2, 8, 16
PAIRS = {f"present_{part}": f"past_{part}" for part in ("key", "value")}
RANDOM = np.random.default_rng(11)


def attention_model(rows: int | str, batch: int = 1, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """GroupQueryAttention whose past has `rows` rows: a number for a shared buffer, a symbol for a cache that grows."""
    total = rows if isinstance(rows, int) else "total"
    cache = (batch, KV_HEADS, rows, SIZE)
    inputs = {
        "query": (batch, "n", HEADS * SIZE),
        "key": (batch, "n", KV_HEADS * SIZE),
        "value": (batch, "n", KV_HEADS * SIZE),
        "past_key": cache,
        "past_value": cache,
    }
    lengths = [
        helper.make_tensor_value_info(name, TensorProto.INT32, shape)
        for name, shape in (("last", [batch]), ("all", []))
    ]
    outputs = {"y": (batch, "n", HEADS * SIZE), **dict.fromkeys(PAIRS, (batch, KV_HEADS, total, SIZE))}
    given, made = (
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in each.items()]
        for each in (inputs, outputs)
    )
    node = helper.make_node(
        "GroupQueryAttention",
        [*inputs, "last", "all"],
        [*outputs],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
    )
    graph = helper.make_graph([node], "attention", [*given, *lengths], made)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def step(rows: int, ends: list[int], dtype: Any = np.float32) -> dict[str, Array]:
    """The inputs for `rows` new positions of each row of the batch, which then has `ends` keys."""
    sizes = {"query": HEADS, "key": KV_HEADS, "value": KV_HEADS}
    drawn = {
        name: RANDOM.standard_normal((len(ends), rows, heads * SIZE)).astype(dtype) for name, heads in sizes.items()
    }
    return {**drawn, "last": np.array(ends, np.int32) - 1, "all": np.array(max(ends), np.int32)}


def first(rows: int, batch: int = 1, dtype: Any = np.float32) -> dict[str, Array]:
    return {name: np.zeros((batch, KV_HEADS, rows, SIZE), dtype) for name in PAIRS.values()}


STEPS = [(5, [5]), (1, [6]), (1, [7]), (3, [10]), (1, [11])]
RAGGED = [(4, [4, 2]), (1, [5, 3]), (1, [6, 4]), (2, [8, 6])]


def check(session: compiler.Session, state: State, steps: list[dict[str, Array]], begin: Any) -> None:
    for given, wanted in zip(steps, fed_back(session, PAIRS, begin, steps), strict=True):
        assert_same(session.run(given, state=state), {"y": wanted["y"]})
        held = state.numpy()
        assert_same(held, {target: wanted[source] for source, target in PAIRS.items()})


@pytest.mark.parametrize("options", [{}, {"optimize": False}], ids=["optimized", "plain"])
def test_caches_that_grow(device: str, options: dict[str, Any]) -> None:
    plan = compiler.compile(attention_model("past"), Options(state="auto", **options))
    assert plan.state == [StateInfo(source, target, 2) for source, target in PAIRS.items()]
    session = compiler.load(plan, device, threads=2)
    state = session.new_state()
    check(session, state, [step(*each) for each in STEPS], first(0))
    assert state.length == 11
    fork = state.copy()
    state.truncate(7)
    for each, ends in ((state, 8), (fork, 12)):
        held = each.numpy()
        check(session, each, [step(1, [ends])], held)


def test_shared_buffers(device: str) -> None:
    plan = compiler.compile(attention_model(BUFFER), Options(state="auto"))
    assert plan.state == [StateInfo(source, target, None) for source, target in PAIRS.items()]
    session = compiler.load(plan, device, threads=2)
    state = session.new_state()
    # The last steps go back: rows behind the new ones become zeros again.
    steps = [step(*each) for each in (*STEPS, (1, [3]), (1, [4]), (2, [16]))]
    check(session, state, steps, first(BUFFER))
    with pytest.raises(RunError, match="do not fit"):
        session.run({**step(1, [3]), "last": np.array([-5], np.int32)}, state=state)
    check(session, state, [step(1, [9])], state.numpy())


def test_a_new_prompt_in_a_buffer() -> None:
    session = compiler.load(compiler.compile(attention_model(BUFFER), Options(state="auto")), threads=1)
    begin = {name: RANDOM.standard_normal(array.shape).astype(np.float32) for name, array in first(BUFFER).items()}
    check(session, session.new_state(begin), [step(6, [6]), step(1, [7]), step(2, [2]), step(1, [3])], begin)


@pytest.mark.parametrize("rows", ["past", BUFFER])
def test_rows_of_other_lengths(rows: int | str) -> None:
    session = compiler.load(compiler.compile(attention_model(rows, batch=2), Options(state="auto")), threads=2)
    size = rows if isinstance(rows, int) else 0
    check(session, session.new_state(), [step(*each) for each in RAGGED], first(size, 2))


def test_caches_of_16_bits() -> None:
    model = attention_model(BUFFER, dtype=TensorProto.FLOAT16)
    session = compiler.load(compiler.compile(model, Options(state="auto")), threads=1)
    steps = [step(*each, dtype=np.float16) for each in STEPS]
    check(session, session.new_state(), steps, first(BUFFER, dtype=np.float16))


ATTENTION = """<ir_version: 11, opset_import: ["": 23]> m
    (float[1, 4, n, 8] q, float[1, 2, n, 8] k, float[1, 2, n, 8] v, float[1, 2, past, 8] past_key,
     float[1, 2, past, 8] past_value)
    => (float[1, 4, n, 8] y, float[1, 2, total, 8] present_key, float[1, 2, total, 8] present_value) {
    y, present_key, present_value = Attention <CAUSAL> (q, k, v, , past_key, past_value)
}"""


@pytest.mark.parametrize("causal", [0, 1])
def test_the_past_of_attention_grows(device: str, causal: int) -> None:
    model = onnx.parser.parse_model(ATTENTION.replace("CAUSAL", f"is_causal = {causal}"))
    plan = compiler.compile(model, Options(state="auto"))
    names = [next(iter(each["op"])) for each in plan.document["main"]["steps"]]
    assert names.count("Concat") == 2 and names.count("Attention") == 1
    session = compiler.load(plan, device, threads=2)
    shapes = {"q": (1, 4), "k": (1, 2), "v": (1, 2)}
    steps = [
        {name: RANDOM.standard_normal((*heads, rows, 8), np.float32) for name, heads in shapes.items()}
        for rows in (5, 1, 1, 3, 1)
    ]
    state = session.new_state()
    check(session, state, steps, first(0))
    assert state.length == 11
