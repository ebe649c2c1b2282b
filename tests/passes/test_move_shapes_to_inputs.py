"""Sizes of inputs are read from inputs."""

import pytest

from compiler.passes.drop_dead_nodes import drop_dead_nodes
from compiler.passes.move_shapes_to_inputs import move_shapes_to_inputs

HEAD = """agraph (float[B, 3, T] x, float[N] z) => (int64[K] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] back = {-1},
    int64 first = {0}, int64 last = {-1}> { t = Transpose(x)"""


def run(check_pass, parse, nodes):
    model = parse(f"{HEAD} {nodes} }}")
    check_pass(move_shapes_to_inputs, model)
    drop_dead_nodes.run(model)
    return [node.op_type for node in model.graph if node.op_type != "Neg"]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("s = Shape(t)  a = Slice(s, zero, one)  y = Neg(a)", ["Shape"]),
        ("s = Shape(t)  a = Slice(s, zero, two)  y = Neg(a)", ["Shape", "Concat"]),
        ("s = Shape(t)  a = Slice(s, zero, three)  y = Neg(a)", ["Shape", "Shape", "Concat"]),
        ("s = Shape(t)  a = Gather(s, last)  y = Neg(a)", ["Shape", "Squeeze"]),
        ("s = Shape(t)  a = Gather(s, two)  y = Neg(a)", ["Shape"]),
        ("s = Shape<start = 1>(t)  a = Gather(s, last)  y = Neg(a)", ["Shape", "Squeeze"]),
        ("s = Shape(x)  a = Gather(s, last)  y = Neg(a)", ["Shape", "Gather"]),
        ("c = Concat<axis = 0>(z, z)  s = Shape(c)  a = Gather(s, first)  y = Neg(a)", ["Concat", "Shape", "Gather"]),
        ("s = Shape(t)  a = Slice(s, zero, three, zero, two)  y = Neg(a)", ["Transpose", "Shape", "Slice"]),
    ],
)
def test_sizes(check_pass, parse, nodes, left):
    assert run(check_pass, parse, nodes) == left
