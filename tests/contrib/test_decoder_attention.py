"""DecoderMaskedMultiHeadAttention, and MultiHeadAttention with the inputs of a decoder: one token and a buffer."""

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError, RunError
from tests.contrib.cases import HALF, Array, Case, case, check, integers, normal
from tests.state.models import fed_back

OP, MULTI = "DecoderMaskedMultiHeadAttention", "MultiHeadAttention"
QKV = [normal(4, 1, 32, seed=seed) for seed in range(3)]
PAST = [normal(4, 4, 7, 8, seed=seed) for seed in (3, 4)]
CROSS = [QKV[0], *[normal(4, 4, 5, 8, seed=seed) for seed in (5, 6)]]
LENGTH, WIDTH = np.int32([3]), np.int32([2])
BEAMS = integers(0, 2, 2, 2, 7, dtype=np.int32)
MARKS, CROSS_MARKS = integers(0, 2, 4, 4, dtype=np.int32), integers(0, 2, 4, 5, dtype=np.int32)
TERM, BIAS = normal(4, 4, 1, 4), normal(96)
N, SHARED = {"num_heads": 4}, {"num_heads": 4, "past_present_share_buffer": 1}
PRESENT, ALL, SCORES = (True, True, True), (True,) * 4, (True, False, False, True)
DIMS = {0: "B _ _", 1: "B _ _", 2: "B _ _"}
BUFFERS = {5: "B _ M _", 6: "B _ M _"}
FIELDS = ("mask", "term", "length", "width", "beams", "bias")


def step(name: str, *, dtype: Any = np.float32, **options: Any) -> Any:
    """A token of DecoderMaskedMultiHeadAttention with a past of three tokens."""
    given = {key: options.pop(key, None) for key in FIELDS}
    length = LENGTH if given["length"] is None else given["length"]
    floats = [None if x is None else x.astype(dtype) for x in (*QKV, given["term"], *PAST, given["bias"])]
    q, k, v, term, key, value, bias = floats
    k, v = options.pop("key", k), options.pop("value", v)
    inputs = (q, k, v, given["mask"], term, key, value, length, given["width"], given["beams"], bias)
    dims = {**DIMS, **BUFFERS}
    if given["mask"] is not None:
        dims[3] = "B T"
    if given["beams"] is not None:
        dims[9] = "G W M"
    return case(OP, *inputs, name=name, **{"outputs": PRESENT, "dims": dims, **SHARED, **options})


def multi(name: str, mask: Array | None = None, term: Array | None = None, **options: Any) -> Any:
    """A token of MultiHeadAttention with a past of three tokens and beams."""
    bias, length = options.pop("bias", None), options.pop("length", LENGTH)
    inputs = (*QKV, bias, mask, term, *PAST, length, options.pop("beams", BEAMS))
    dims = {**DIMS, 6: "B _ M _", 7: "B _ M _", 9: "G _ M", **({} if mask is None else {4: "B T"})}
    return case(MULTI, *inputs, name=name, **{"outputs": PRESENT, "dims": dims, **N, **options})


def rows(count: int) -> Array:
    """Marks of the keys of three past tokens and these new ones."""
    return integers(0, 2, 4, 3 + count, dtype=np.int32)


def buffered(
    name: str, count: int, mask: Array | None = None, term: Array | None = None, *, axis: str = "_", **options: Any
) -> Any:
    """Tokens of MultiHeadAttention with a past of three tokens. In a symbolic model, their number is `axis`."""
    qkv, dtype = [normal(4, count, 32, seed=seed) for seed in range(3)], options.pop("dtype", np.float32)
    floats = [None if x is None else x.astype(dtype) for x in (*qkv, options.pop("bias", None), term, *PAST)]
    length = options.pop("length", LENGTH)
    inputs = (*floats[:4], mask, *floats[4:], length, options.pop("beams", None))
    dims = dict.fromkeys(range(3), f"B {axis} _") | dict.fromkeys((6, 7), "B _ M _")
    return case(MULTI, *inputs, name=name, **{"outputs": PRESENT, "dims": dims, **N, **options})


ONE = {"width": WIDTH, "beams": BEAMS}
CASES = [
    step("step"),
    step("scalar length", length=np.array(3, np.int32)),
    step("full buffer", length=np.int32([6])),
    step("mask", mask=MARKS),
    step("filter", mask=MARKS, mask_filter_value=-2.5),
    step("negative marks", mask=MARKS - 1),
    step("nothing visible", mask=0 * MARKS),
    step("scale", scale=0.3),
    step("scale 0", scale=0.0),
    step("term", term=TERM),
    step("term of heads", term=TERM[:1]),
    step("term of a batch", term=TERM[:, :1]),
    step("term of all", term=TERM[:1, :1], mask=MARKS),
    step("bias", bias=BIAS),
    step("scores", output_qk=1, outputs=ALL),
    step("scores with masks", output_qk=1, outputs=ALL, mask=MARKS, term=TERM, bias=BIAS),
    step("unused scores", output_qk=1),
    step("beam width 1", width=np.int32([1]), constants=(8,)),
    step("float16", dtype=np.float16, mask=MARKS, term=TERM, bias=BIAS, **HALF),
    step("beams", **ONE),
    step("beams without past", length=np.int32([0]), **ONE),
    step("beams in a full buffer", length=np.int32([6]), **ONE),
    step("four beams", width=np.int32([4]), beams=integers(0, 4, 1, 4, 7, dtype=np.int32)),
    step("one beam", beams=np.zeros((4, 1, 7), np.int32)),
    step("beams and masks", mask=MARKS, term=TERM[:1], bias=BIAS, output_qk=1, outputs=ALL, **ONE),
    step("beams and negative marks", mask=MARKS - 1, mask_filter_value=-2.5, **ONE),
    step("beams and a term of each row", term=TERM, **ONE),
    step("beams and a term of all", term=TERM[:1, :1], **ONE),
    step("beams, scale", scale=0.3, term=TERM[:1], mask=MARKS, **ONE),
    step("float16 beams", dtype=np.float16, mask=MARKS, bias=BIAS, **ONE, **HALF),
    case(OP, *CROSS, name="cross", dims={0: "B _ _", 1: "B _ L _", 2: "B _ L _"}, **N),
    case(OP, *CROSS, CROSS_MARKS, name="cross rows", mask_filter_value=-2.5, dims={3: "B L"}, **N),
    case(OP, *CROSS, CROSS_MARKS, name="cross scores", output_qk=1, outputs=SCORES, scale=0.3, **N),
    case(OP, *CROSS, *[None] * 7, BIAS, name="cross bias", **N),
    case(OP, *CROSS, *[None] * 4, LENGTH, WIDTH, BEAMS, name="cross beams", **N),
    case(OP, *QKV, name="cross with one key", **N),
    step("keys apart", key=QKV[1].reshape(4, 4, 1, 8), value=QKV[2].reshape(4, 4, 1, 8), dims={}),
    step("no past", length=np.int32([0])),
    multi("beams"),
    multi("bias", bias=BIAS),
    multi("beams in a full buffer", length=np.int32([6])),
    multi("beams and rows", MARKS, mask_filter_value=-2.5),
    multi("beams and a term", None, TERM[:1]),
    multi("beams and a term of each row", MARKS, TERM),
    multi("scores of beams", MARKS, TERM[:1], outputs=ALL, scale=0.3),
    multi("one beam", beams=np.zeros((4, 1, 7), np.int32)),
    multi("unidirectional beams", unidirectional=1),
    multi("no past", length=np.int32([0])),
    buffered("one token", 1),
    buffered("three tokens", 3),
    buffered("three tokens without a past", 3, length=np.int32([0])),
    buffered("three tokens that fill the buffer", 3, length=np.array(4, np.int32)),
    buffered("unidirectional tokens", 3, unidirectional=1),
    buffered("unidirectional tokens and masks", 3, rows(3), normal(4, 4, 3, 6), unidirectional=1, bias=BIAS),
    buffered("rows", 3, rows(3) - 1, mask_filter_value=-2.5),
    buffered("lengths", 3, np.int32([2, 6, 4, 5])),
    buffered("squares", 3, integers(0, 2, 4, 3, 6, dtype=np.int32)),
    buffered("term", 3, None, normal(4, 1, 3, 6), scale=0.3),
    buffered("term of all", 3, None, normal(1, 1, 3, 6)),
    buffered("scores", 3, rows(3), normal(1, 4, 3, 6), outputs=ALL),
    buffered("lengths of one token with beams", 1, np.int32([2, 4, 1, 3]), beams=BEAMS),
    buffered("squares of one token with beams", 1, integers(0, 2, 4, 1, 4, dtype=np.int32), beams=BEAMS),
    buffered("three tokens with beams", 3, rows(3) - 1, normal(4, 4, 3, 6), mask_filter_value=-2.5, beams=BEAMS),
    buffered("one token, some queries, beams", 1, rows(1) - 1, TERM, beams=BEAMS, axis="S", mask_filter_value=-2.5),
    buffered(
        "three tokens, some queries, beams",
        3,
        rows(3) - 1,
        normal(4, 4, 3, 6),
        mask_filter_value=-2.5,
        beams=BEAMS,
        axis="S",
    ),
    buffered("float16", 3, rows(3), normal(4, 4, 3, 6), dtype=np.float16, **HALF),
    case(MULTI, *CROSS, *[None] * 5, LENGTH, BEAMS, name="cross with beams", outputs=(True,), **N),
    case(MULTI, *QKV, *[None] * 5, LENGTH, BEAMS, name="beams without a past", outputs=(True,), **N),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def token(**changed: Array | None) -> list[Array | None]:
    """The inputs of a step with beams, some of them changed."""
    names = ["query", "key", "value", "mask", "term", "past_key", "past_value", "length", "width", "beams"]
    given = dict(zip(names, [*QKV, None, None, *PAST, LENGTH, WIDTH, BEAMS], strict=True))
    return [*{**given, **changed}.values()]


def tokens(*mask_to_beams: Array | None) -> list[Array | None]:
    return [*QKV, None, *mask_to_beams]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "reason"),
    [
        (OP, token(query=np.concatenate(QKV, axis=2), key=None, value=None), SHARED, "needs the inputs key and value"),
        (OP, token(value=None), SHARED, "needs the inputs key and value"),
        (OP, token(past_value=None), SHARED, "past_key and past_value together"),
        (OP, token(), N, "past_present_share_buffer is 0, which is not supported with a past"),
        (OP, CROSS, SHARED, "past_present_share_buffer is 1, which is not supported without a past"),
        (OP, token(length=None), SHARED, "input 7"),
        (OP, token(query=normal(4, 2, 32)), SHARED, "query is 2, not 1"),
        (OP, token(value=normal(4, 1, 48)), SHARED, "value is 48, not 32"),
        (OP, token(key=normal(4, 4, 5, 8)), SHARED, "key is 5, not 1"),
        (OP, token(past_key=normal(4, 2, 7, 8)), SHARED, "past_key is 2, not 4"),
        (OP, token(mask=np.int32([1, 2, 3, 4])), SHARED, "mask_index has 1 dimensions"),
        (OP, token(mask=MARKS.reshape(4, 1, 4)), SHARED, "mask_index has 3 dimensions"),
        (OP, token(beams=None), SHARED, "beam_width needs the input cache_indirection"),
        (OP, token(beams=BEAMS.reshape(4, 7)), SHARED, "cache_indirection has 2 dimensions"),
        (OP, token(term=TERM[:, :1]), SHARED, "attention_bias of one head needs a batch of 1"),
        (OP, [*CROSS, None, normal(4, 4, 1, 5)], N, "attention_bias without a past"),
        (OP, [QKV[0], normal(4, 5, 32), normal(4, 5, 32)], N, "key is 5, not 1"),
        (OP, [*CROSS[:2], normal(4, 4, 5, 12)], N, "value is 12, not 8"),
        (OP, token(), {**SHARED, "output_qk": 2}, "output_qk is 0 or 1"),
        (MULTI, [*CROSS, None, None, None, *PAST, LENGTH], N, "needs Q, K and V of three dimensions"),
        (MULTI, [*QKV[:2], normal(4, 1, 48), None, None, None, *PAST, LENGTH], N, "value is 48, not 32"),
        (MULTI, tokens(None, TERM[:, :1], *PAST, LENGTH, BEAMS), N, "attention_bias of one head"),
        (MULTI, tokens(None, None, *PAST, LENGTH, BEAMS.reshape(4, 7)), N, "cache_indirection has 2 dimensions"),
    ],
)
def test_refusals(op: str, inputs: list[Array | None], attributes: dict[str, int], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(Case(op, inputs, attributes).model())


def test_a_state_holds_the_buffers() -> None:
    """The runtime writes into the buffers in place, and the results are those without a state."""
    given = Case(MULTI, tokens(None, None, *PAST, LENGTH), dict(N), PRESENT)
    pairs = {"y1": "x6", "y2": "x7"}
    session = compiler.load(compiler.compile(given.model(), compiler.Options(state=pairs)), threads=1)
    assert all(pair.in_place and not pair.copies for pair in session.prepared().state)
    first = {name: given.feeds[name] for name in pairs.values()}
    steps = [{"x0": QKV[0] + i, "x1": QKV[1] - i, "x2": QKV[2] * i, "x8": np.int32([i])} for i in range(7)]
    state = session.new_state(first)
    for step_, wanted in zip(steps, fed_back(session, pairs, first, steps), strict=True):
        np.testing.assert_array_equal(session.run(step_, state=state)["y0"], wanted["y0"])


def test_scores_without_output_qk_are_refused() -> None:
    with pytest.raises(CompileError, match="output 3"):
        compiler.compile(Case(OP, token(), SHARED, ALL).model())


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (OP, token(length=np.int32([7]), beams=None, width=None)),
        (OP, token(length=np.int32([-1]), beams=None, width=None)),
        (OP, token(beams=BEAMS + 1)),
        (OP, token(beams=BEAMS - 1)),
        (OP, token(width=np.int32([4]))),
        (OP, token(beams=BEAMS[:1])),
        (OP, token(beams=BEAMS[:, :, :6])),
        (OP, token(mask=MARKS[:, :3])),
        (OP, token(mask=np.ones((4, 7), np.int32))),
        (OP, token(term=normal(1, 4, 1, 7))),
        (MULTI, tokens(None, None, *PAST, np.int32([7]), None)),
        (MULTI, tokens(None, None, *PAST, LENGTH, BEAMS + 1)),
        (MULTI, tokens(np.ones((4, 7), np.int32), None, *PAST, LENGTH, None)),
    ],
)
def test_what_onnxruntime_refuses_in_a_run_is_an_error(op: str, inputs: list[Array | None], optimize: bool) -> None:
    """Places outside of the buffer, beams that do not exist, and other numbers of keys."""
    given = Case(op, inputs, SHARED if op == OP else N, PRESENT)
    with pytest.raises((CompileError, RunError)):
        plan = compiler.compile(given.model(), compiler.Options(optimize=optimize))
        compiler.load(plan).run(given.feeds)
