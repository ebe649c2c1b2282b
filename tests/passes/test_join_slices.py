"""The pass joins adjacent slices, and keeps others."""

import pytest

from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.join_slices import join_slices

HEAD = """agraph (float[2, N, 6] x, float[2, N, 6] z) => (float[A, B, C] y)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}, int64[1] one = {1},
    int64[1] minus_two = {-2}, int64[1] minus_one = {-1}, int64[1] far = {9223372036854775807},
    int64[3] parts = {1, 2, 3}>"""


def run(check_pass, parse, nodes):
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}")
    report = check_pass(join_slices, model)
    return [node.op_type for node in model.graph], [missed.reason for missed in report.missed if missed.near]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("b = Slice(x, zero, two, two) c = Slice(x, two, six, two) a = Concat<axis=2>(b, c)", ["Exp"]),
        ("b = Slice(x, zero, two, two) c = Slice(x, two, far, two, one) a = Concat<axis=-1>(b, c)", ["Exp"]),
        ("b = Slice(x, zero, four, minus_one) c = Slice(x, minus_two, far, two) a = Concat<axis=2>(b, c)", ["Exp"]),
        ("b = Slice(x, zero, two, one) c = Slice(x, two, far, one) a = Concat<axis=1>(b, c)", ["Exp"]),
        ("b, c = Split<axis=2, num_outputs=2>(x) a = Concat<axis=2>(b, c)", ["Exp"]),
        ("b, c, d = Split<axis=2>(x, parts) a = Concat<axis=2>(b, c, d)", ["Exp"]),
        ("b, c, d = Split<axis=2>(x, parts) a = Concat<axis=2>(b, c)", ["Slice", "Exp"]),
        ("b = Slice(x, zero, two, two) c = Slice(x, two, four, two) a = Concat<axis=2>(b, c)", ["Slice", "Exp"]),
        ("b, c = Split<axis=2, num_outputs=2>(x) a = Concat<axis=2>(b, c, z)", ["Concat", "Exp"]),
    ],
)
def test_parts_that_follow_one_another(check_pass, parse, nodes, left):
    assert run(check_pass, parse, nodes) == (left, [])


@pytest.mark.parametrize(
    "nodes",
    [
        "b = Slice(x, two, six, two) c = Slice(x, zero, two, two) a = Concat<axis=2>(b, c)",
        "b = Slice(x, zero, two, two) c = Slice(x, two, four, two) a = Concat<axis=1>(b, c)",
        "b = Slice(x, zero, two, two) c = Slice(z, two, six, two) a = Concat<axis=2>(b, c)",
        "b = Slice(x, zero, four, two) c = Slice(x, two, six, two) a = Concat<axis=2>(b, c)",
        "b = Slice(x, zero, two, two, two) c = Slice(x, two, six, two) a = Concat<axis=2>(b, c)",
        "b = Slice(x, zero, minus_two, one) c = Slice(x, minus_two, far, one) a = Concat<axis=1>(b, c)",
        "b, c = Split<axis=2, num_outputs=2>(x) a = Concat<axis=1>(b, c)",
    ],
)
def test_parts_that_do_not(check_pass, parse, nodes):
    _, reasons = run(check_pass, parse, nodes)
    assert reasons == ["no two parts are adjacent in one value"]


def test_an_output_that_cannot_be_an_input(check_pass, parse):
    model = parse(
        """agraph (float[2, 6] x) => (float[2, 6] y) {
            b, c = Split<axis=1, num_outputs=2>(x)
            y = Concat<axis=1>(b, c)
        }"""
    )
    report = check_pass(join_slices, model)
    assert [missed.reason for missed in report.missed if missed.near] == ["the output 'y' needs a name of its own"]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("b = Concat<axis=1>(x, z) a = Concat<axis=1>(b, x, b2)  b2 = Concat<axis=-2>(z, z)", ["Concat", "Exp"]),
        ("b = Concat<axis=1>(x, z) a = Concat<axis=0>(b, b3)  b3 = Concat<axis=1>(z, z)", ["Concat"] * 3 + ["Exp"]),
        ("b = Concat<axis=1>(x, z) a = Concat<axis=1>(b, b)", ["Concat", "Concat", "Exp"]),
        ("b = Concat<axis=1>(x, z) c = Concat<axis=1>(z, b) a = Concat<axis=1>(c, x)", ["Concat", "Exp"]),
    ],
)
def test_joined_parts(check_pass, parse, nodes, left):
    for name in ("b2", "b3"):
        if f" {name} = " in nodes:
            first, second = nodes.split(f" {name} = ")
            nodes = f"{name} = {second} {first}"
    assert run(check_pass, parse, nodes)[0] == left


def test_a_concat_without_an_axis_is_no_match(parse):
    nodes = "b = Slice(x, zero, two, two) c = Slice(x, two, six, two) a = Concat(b, c)"
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}")
    infer_shapes.run(model)
    report = join_slices.run(model)
    assert [missed.reason for missed in report.missed if missed.near] == ["the axis is not known"]
    assert [node.op_type for node in model.graph] == ["Slice", "Slice", "Concat", "Exp"]
