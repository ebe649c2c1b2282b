"""sort_nodes, drop_dead_nodes, merge_duplicates, pin_dims, split_sequences."""

import pytest
from onnx import TensorProto, helper

from compiler import CompileError
from compiler.frontend.load import load_model
from compiler.ir.text import graph_text
from compiler.passes.drop_dead_nodes import drop_dead_nodes
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.merge_duplicates import merge_duplicates
from compiler.passes.pin_dims import pin_dims
from compiler.passes.sort_nodes import sort_nodes
from compiler.passes.split_sequences import split_sequences


def unsorted_model(*nodes):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node(op, inputs, [name]) for op, inputs, name in nodes], "g", [x], [y])
    return load_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)).model


def test_nodes_in_any_order(check_pass):
    model = unsorted_model(("Neg", ["b"], "y"), ("Exp", ["a"], "b"), ("Abs", ["x"], "a"))
    after = "input x: float[n]\na = Abs(x)\nb = Exp(a)\ny = Neg(b)\nreturn y\n"
    assert check_pass(sort_nodes, model, after, same_results=None).changed


def test_a_cycle_is_named():
    model = unsorted_model(("Add", ["x", "b"], "a"), ("Exp", ["a"], "b"), ("Neg", ["b"], "y"))
    with pytest.raises(CompileError) as error:
        sort_nodes.run(model)
    assert [item.code for item in error.value.diagnostics] == ["CC0105"]
    assert "Add(a) → Exp(b) → Add(a)" in str(error.value)


def test_a_cycle_through_a_branch_is_named(parse):
    model = parse("""agraph (float[N] x, bool c) => (y) {
        a = Exp(b)
        b = If (c) <then_branch = t () => (s) { s = Neg(a) }, else_branch = e () => (o) { o = Neg(x) }>
        y = Neg(x)
    }""")
    with pytest.raises(CompileError, match=r"has a cycle: Exp\(a\) → If\(b\) → Exp\(a\)"):
        sort_nodes.run(model)


def test_a_long_cycle_is_cut():
    ring = [("Exp", [f"v{(index + 1) % 9}"], f"v{index}") for index in range(9)]
    with pytest.raises(CompileError, match=r"(Exp\(v\d\) → ){5}\(4 more\) → Exp"):
        sort_nodes.run(unsorted_model(*ring, ("Neg", ["v0"], "y")))


def test_dead_nodes_and_initializers(check_pass):
    check_pass(
        drop_dead_nodes,
        """
        agraph (float[N] x, bool c) => (float[N] y) <float dead = {1}, float alive = {2}> {
            a = Add(x, dead)
            b = Exp(a)
            y = If(c) <
                then_branch = g1 () => (float[N] t) { u = Abs(x)  t = Mul(x, alive) },
                else_branch = g2 () => (float[N] e) { e = Neg(x) }
            >
        }
        """,
        """
        input x: float[N]
        input c: bool[]
        constant alive = float[] {2}
        y = If(c)
          then_branch:
            t = Mul(x, alive)
            return t
          else_branch:
            e = Neg(x)
            return e
        return y
        """,
    )


def test_duplicates(check_pass):
    report = check_pass(
        merge_duplicates,
        """
        agraph (float[N] x) => (float[N] y) <float one = {1}, float uno = {1}> {
            a = Add(x, one)
            b = Add(x, uno)
            c = LeakyRelu<alpha=0.5>(a)
            d = LeakyRelu<alpha=0.5>(b)
            e = LeakyRelu<alpha=0.25>(b)
            f = Add(c, d)
            y = Add(f, e)
        }
        """,
        """
        input x: float[N]
        constant one = float[] {1}
        a = Add(x, one)
        c = LeakyRelu(a, alpha=0.5)
        e = LeakyRelu(a, alpha=0.25)
        f = Add(c, c)
        y = Add(f, e)
        return y
        """,
    )
    assert len(report.fired) == 2


def test_random_nodes_are_not_merged(check_pass):
    text = "agraph (float[N] x) => (float[N] y) { a = RandomNormalLike(x)  b = RandomNormalLike(x)  y = Sub(a, b) }"
    assert not check_pass(merge_duplicates, text, same_results=None).changed


def test_equal_outputs_keep_their_names(check_pass):
    check_pass(
        merge_duplicates,
        "agraph (float[N] x) => (float[N] y, float[N] z) { y = Exp(x)  z = Exp(x) }",
        "input x: float[N]\ny = Exp(x)\nz = Identity(y)\nreturn y, z\n",
    )


def test_pinned_dims(parse):
    text = "agraph (float[batch, 3, T] x) => (float[batch, 3, T] y) { y = Exp(x) }"
    model = parse(text)
    pin_dims({"batch": 2}).run(model)
    assert graph_text(model.graph) == "input x: float[2, 3, T]\ny = Exp(x)\nreturn y\n"
    report = pin_dims({"bach": 1, "t.0": 1, "T": 1}).run(parse(text))
    assert [item.code for item in report.refused] == ["CC0403", "CC0403"]


SPLITS = [
    ("p = SplitToSequence<axis=1>(x, sizes)", "sizes", [1, 2, 3], "constant sizes_1 = int64[3] {1, 2, 3}", 3, ""),
    ("p = SplitToSequence<axis=1>(x, sizes)", "sizes", 4, "constant sizes_1 = int64[2] {4, 2}", 2, ""),
]


@pytest.mark.parametrize(("split", "name", "sizes", "constant", "count", "_"), SPLITS)
def test_split_sequences(check_pass, parse, split, name, sizes, constant, count, _):
    kind = f"int64[{len(sizes)}]" if isinstance(sizes, list) else "int64"
    data = ", ".join(map(str, sizes)) if isinstance(sizes, list) else str(sizes)
    model = parse(
        f"""
        agraph (float[2, 6] x) => (float[2, M] a, float[2, K] b)
            <{kind} {name} = {{{data}}}, int64 zero = {{0}}, int64 last = {{-1}}> {{
            {split}
            a = SequenceAt(p, zero)
            b = SequenceAt(p, last)
        }}
        """
    )
    infer_shapes.run(model)
    report = check_pass(split_sequences, model)
    text = graph_text(model.graph)
    assert len(report.fired) == 1 and constant in text and "SequenceAt" not in text


def test_split_sequences_drops_the_axis(check_pass, parse):
    model = parse(
        """
        agraph (float[2, 3] x) => (float[2] y) <int64 one = {1}> {
            p = SplitToSequence<axis=1, keepdims=0>(x)
            y = SequenceAt(p, one)
        }
        """
    )
    infer_shapes.run(model)
    check_pass(split_sequences, model)
    assert "Squeeze:13" in graph_text(model.graph)


def test_split_sequences_of_an_unknown_batch(check_pass, parse):
    """Only the size of the split axis has to be known."""
    model = parse(
        """
        agraph (float[N, 6] x) => (float[N, 2] y) <int64 two = {2}> {
            p = SplitToSequence<axis=1>(x, two)
            y = SequenceAt(p, two)
        }
        """
    )
    infer_shapes.run(model)
    assert len(check_pass(split_sequences, model).fired) == 1
    assert model.graph.outputs[0].shape == ["N", 2]


def test_a_sequence_that_is_needed_stays(check_pass, parse):
    model = parse(
        """
        agraph (float[2, 3] x, int64 i) => (float[2, 1] y) {
            p = SplitToSequence<axis=1>(x)
            y = SequenceAt(p, i)
        }
        """
    )
    infer_shapes.run(model)
    report = check_pass(split_sequences, model, same_results=None)
    assert [missed.reason for missed in report.missed] == [
        "SequenceAt reads the sequence, or a position that is not constant"
    ]
