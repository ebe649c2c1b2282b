"""Readers of a sequence run before the operator that changes it."""

import pytest

from compiler.passes.read_sequences_first import read_sequences_first
from compiler.passes.sort_nodes import sort_nodes

HEAD = "agraph (seq(float[n]) s, float[n] x, int64 i) => (seq(float[n]) t, int64 k, float[n] y)"


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        ("t = SequenceInsert(s, x) k = SequenceLength(s) y = SequenceAt(s, i)", "Length At Insert"),
        ("t = SequenceErase(s, i) k = SequenceLength(s) y = SequenceAt(s, i)", "Length At Erase"),
        ("k = SequenceLength(s) t = SequenceInsert(s, x) y = SequenceAt(s, k)", "Length At Insert"),
        ("t = SequenceInsert(s, x) k = SequenceLength(t) y = SequenceAt(s, k)", "Insert Length At"),
        ("t = SequenceInsert(s, x) k = SequenceLength(t) y = SequenceAt(t, i)", "Insert Length At"),
    ],
)
def test_readers_move_if_their_inputs_allow(parse, nodes, order):
    model = parse(f"{HEAD} {{ {nodes} }}")
    report = read_sequences_first.run(model)
    assert [node.op_type.removeprefix("Sequence") for node in model.graph] == order.split()
    assert not sort_nodes.run(model).fired, "every node is behind those that it reads"
    assert not read_sequences_first.run(model).fired
    assert all(fired.rule == "move" for fired in report.fired)
