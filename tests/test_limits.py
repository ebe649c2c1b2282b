"""Sizes, ranks, depths and threads beyond the limits of plans, models and calls."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import CompileError, Options, Plan, RunError, _runtime
from compiler.cli.arguments import MAX_THREADS
from compiler.plan import write

NEG = "(float[n] x) => (float[n] y) { y = Neg(x) }"


def plan_of(graph: str, **options: object) -> Plan:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {graph}')
    return compiler.compile(model, Options(**options))


FOUR = np.ones(4, np.float32)
SIZES = {
    "Pad": ("(float[4] x, int64[2] p) => (float[n] y) { y = Pad(x, p) }", {"x": FOUR, "p": [-2, 2**31 - 1]}),
    "Pad by edges": (
        '(float[4] x, int64[2] p) => (float[n] y) { y = Pad<mode = "edge">(x, p) }',
        {"x": FOUR, "p": [0, 2**40]},
    ),
    "Pad by nothing": (
        "(float[m, n] x, int64[2] p, int64[1] a) => (float[m, n] y) { y = Pad(x, p, , a) }",
        {"x": np.zeros((0, 2**40), np.float32), "p": [1, 1], "a": [0]},
    ),
    "CenterCropPad": (
        "(float[4] x, int64[1] p) => (float[n] y) { y = CenterCropPad(x, p) }",
        {"x": FOUR, "p": [2**32]},
    ),
    "rank 65": ("(int64[65] s) => (float[n] y) { y = ConstantOfShape(s) }", {"s": [1] * 65}),
    "sizes beside a zero": (
        "(int64[3] s) => (float y) { t = ConstantOfShape(s) y = ReduceSum(t) }",
        {"s": [0, 2**40, 2**40]},
    ),
    "no rows": (
        "(float[m, n] x) => (float[n] y) <int64[1] a = {0}> { y = ReduceMax<keepdims = 0>(x, a) }",
        {"x": np.zeros((0, 2**40), np.float32)},
    ),
    "Einsum of no rows": (
        '(float[m, n] x) => (float[m] y) { y = Einsum<equation = "ij->i">(x) }',
        {"x": np.zeros((0, 2**40), np.float32)},
    ),
    "SplitToSequence of no rows": (
        "(float[m, n] x, int64 s) => (float[m, k] y) { t = SplitToSequence<axis = 1>(x, s) y = SequenceAt(t, s) }",
        {"x": np.zeros((0, 2**40), np.float32), "s": 1},
    ),
    "SplitToSequence without a size": (
        "(float[m, n] x, int64 s) => (float[m, k] y) { t = SplitToSequence<axis = 1>(x) y = SequenceAt(t, s) }",
        {"x": np.zeros((0, 2**40), np.float32), "s": 1},
    ),
    "strings": (
        "(string[1] x, int64[1] s) => (string[n] y) { y = Expand(x, s) }",
        {"x": np.array(["a"], object), "s": [2**24]},
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_beyond_memory_is_an_error_of_its_step(name: str) -> None:
    graph, feeds = SIZES[name]
    session = compiler.load(plan_of(graph, max_memory=64 << 20, optimize=False), threads=1)
    with pytest.raises(RunError, match=r"max_memory leaves|too large|at most 64 dimensions"):
        session.run({name: np.asarray(value) for name, value in feeds.items()})


def test_an_empty_tensor_needs_no_memory() -> None:
    graph = "(float[m, n] x, int64[1] k) => (float[m, n] y, int64[m, n] i) { y, i = TopK<axis = 0>(x, k) }"
    session = compiler.load(plan_of(graph, max_memory=64 << 20, optimize=False), threads=1)
    y, places = session.run({"x": np.zeros((0, 2**40), np.float32), "k": np.array([0])}).values()
    assert y.shape == places.shape == (0, 2**40)


def test_a_rank_is_bounded_while_compiling() -> None:
    plan = plan_of("(float[8] x, int64[2147483648] a) => (float[n] y) { y = Unsqueeze(x, a) }")
    assert plan.outputs[0].shape is None


def test_an_error_shows_inputs_that_were_taken_over() -> None:
    graph = "(int32[n] x, int32[n] y) => (int32[n] z) { a = Abs(x)  z = Div(a, y) }"
    session = compiler.load(plan_of(graph, optimize=False))
    with pytest.raises(RunError, match="divided by zero") as error:
        session.run({"x": np.int32([1, 5]), "y": np.int32([0, 2])})
    assert error.value.inputs == ["int32 [2]", "int32 [2]"]
    assert error.value.within == []


NESTED = """(int64 count, bool go, int32[2] x) => (int32[2] y) {
    y = Loop(count, go, x) <body = turn (int64 i, bool more, int32[2] v) => (bool on, int32[2] w) {
        on = Identity(more)
        w = If(more) <then_branch = t () => (int32[2] a) { z = Sub(v, v)  a = Div(v, z) },
                      else_branch = e () => (int32[2] b) { b = Identity(v) }>
    }>
}"""


def test_an_error_in_a_block_names_the_blocks_around_it() -> None:
    session = compiler.load(plan_of(NESTED, optimize=False))
    with pytest.raises(RunError, match=r"in block 0 of step \d If in block 0 of step 0 Loop from Div\(a\)") as error:
        session.run({"count": np.array(1), "go": np.array(True), "x": np.int32([1, 2])})
    assert error.value.op == "Binary"
    assert [block.split()[-1] for block in error.value.within] == ["Loop", "If"]


MISFITS = {
    "weights": (
        "(float[1, 4, n] x) => (float[a, b, c] y) <float[3, 1, 1] w = {1, 2, 3}> { y = Conv<group = 2>(x, w) }",
        r"Conv.*weights of shape .3, 1, 1. in 2 groups do not fit",
    ),
    "a row": (
        "(float[3] x) => (float[1] y) <int64[1] i = {3}> { y = Gather(x, i) }",
        r"Gather: index 3 is out of range for axis 0 of size 3",
    ),
    "an element": (
        "(float[2, 3] x) => (float[1, 1] y) <int64[1, 1] i = {-4}> { y = GatherElements<axis = 1>(x, i) }",
        r"GatherElements: index -4 is out of range for axis 1 of size 3",
    ),
    "a place": (
        "(float[2, 3] x, float[1] u) => (float[2, 3] y) <int64[1, 2] i = {0, 3}> { y = ScatterND(x, i, u) }",
        r"ScatterND: index 3 is out of range for axis 1 of size 3",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("optimize", [True, False])
def test_constants_that_do_not_fit_are_refused(name: str, optimize: bool) -> None:
    graph, said = MISFITS[name]
    with pytest.raises(CompileError, match=said) as error:
        plan_of(graph, optimize=optimize)
    assert [found.code for found in error.value.diagnostics] == ["CC0210"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("t = Gather(v, i)", "index 3 is out of range for axis 0 of size 3"),
        ("q = Div(i, z) r = Cast<to = 1>(q) t = Add(v, r)", "an integer is divided by zero"),
    ],
)
def test_constants_of_a_loop_that_never_turns_may_not_fit(body: str, said: str) -> None:
    graph = f"""(int64 count, float[3] x) => (float[n] y) <int64[1] i = {{3}}, int64[1] z = {{0}}> {{
        go = Constant<value = bool {{1}}>()
        y = Loop(count, go, x) <body = b (int64 k, bool c, float[n] v) => (bool d, float[n] t) {{
            d = Identity(c) {body}
        }}>
    }}"""
    session = compiler.load(plan_of(graph))
    x = np.float32([1, 2, 3])
    assert session.run({"count": np.array(0), "x": x})["y"].tolist() == [1, 2, 3]
    with pytest.raises(RunError, match=said):
        session.run({"count": np.array(1), "x": x})


def nested_ifs(depth: int) -> str:
    block = f"v{depth} = Neg(x)"
    for level in reversed(range(depth)):
        branches = f"then_branch = t{level} () => (float[1] v{level + 1}) {{ {block} }}"
        branches += f", else_branch = e{level} () => (float[1] w{level}) {{ w{level} = Neg(x) }}"
        block = f"v{level} = If(c) <{branches}>"
    return f"(float[1] x, bool c) => (float[1] v0) {{ {block} }}"


def test_blocks_nest_up_to_the_limit() -> None:
    session = compiler.load(plan_of(nested_ifs(20), optimize=False))
    feeds = {"x": np.ones(1, np.float32), "c": np.array(True)}
    assert session.run(feeds)["v0"].tolist() == [-1]
    for depth in (21, 26):
        with pytest.raises(CompileError) as error:
            plan_of(nested_ifs(depth), optimize=False)
        assert error.value.diagnostics[0].message == "If: blocks nest deeper than 20"


def test_an_error_does_not_show_a_whole_description() -> None:
    with pytest.raises(_runtime.OpError) as error:
        _runtime.infer('{"NoSuchOp":"' + "x" * 100_000 + '"}', "[]", [], 1)
    assert len(str(error.value)) < 10_000


def test_a_description_that_cannot_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_LONGEST_HEADER", 100)
    with pytest.raises(CompileError, match=r"CC0504.*more than 100\n"):
        plan_of(NEG)


@pytest.mark.parametrize("threads", [0, -1, MAX_THREADS + 1, 2**70])
def test_numbers_of_threads_are_bounded(threads: int) -> None:
    assert MAX_THREADS == _runtime.MAX_THREADS
    with pytest.raises(ValueError, match=f"threads: expected a whole number from 1 to 1024, found {threads}"):
        compiler.load(plan_of(NEG), threads=threads)
    if 0 <= threads < 2**63:
        with pytest.raises(ValueError, match=f"{threads} threads: a session has from 1 to 1024"):
            _runtime.Session(plan_of(NEG).data, "cpu", threads)


def test_a_symbol_has_one_size_in_every_kind_of_input() -> None:
    session = compiler.load(
        plan_of("(string[n] s, float[n] x) => (float[n] y, string[n] t) { y = Neg(x) t = Identity(s) }")
    )
    assert session.run({"s": np.array(["a"], object), "x": FOUR[:1]})["y"].tolist() == [-1]
    with pytest.raises(compiler.InputError, match="with n = 2, as in an input before it"):
        session.run({"s": np.array(["a", "b"], object), "x": FOUR[:1]})
