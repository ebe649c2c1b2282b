"""Group normalization that was written out as reshapes around an InstanceNormalization."""

import pytest

from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_group_norm import recognize_group_norm

CLOSE = (1e-5, 1e-5)
CONSTANTS = """int64[3] groups = {0, 2, -1}, float[2] ones = {1, 1}, float[2] zeros = {0, 0},
    float[2] s = {2, 3}, float[2] t = {-1, 4}, float[4, 1, 1] g = {1, 2, 3, 4}, float[1, 4, 1, 1] b = {5, 6, 7, 8},
    float[1] half = {0.5}, float[4] last = {1, 2, 3, 4}, float[4] cs = {1, 2, 3, 4}, float[4] cb = {4, 3, 2, 1}"""
HEAD = f"agraph (float[N, 4, H, 4] x) => (float[N, 4, H, 4] y) <{CONSTANTS}>"
GROUPED = "r = Reshape(x, groups)  n = InstanceNormalization(r, ones, zeros)  full = Shape(x)"


@pytest.mark.parametrize(
    ("body", "operators", "scale", "bias"),
    [
        (f"{GROUPED} y = Reshape(n, full)", ["GroupNormalization"], [1, 1, 1, 1], [0, 0, 0, 0]),
        (
            f"{GROUPED} m = Reshape(n, full) k = Mul(m, g) y = Add(b, k)",
            ["GroupNormalization"],
            [1, 2, 3, 4],
            [5, 6, 7, 8],
        ),
        (
            "r = Reshape(x, groups) n = InstanceNormalization<epsilon=0.1>(r, s, t) full = Shape(x)"
            " m = Reshape(n, full) y = Mul(half, m)",
            ["GroupNormalization"],
            [1, 1, 1.5, 1.5],
            [-0.5, -0.5, 2, 2],
        ),
        (f"{GROUPED} m = Reshape(n, full) y = Add(m, last)", ["GroupNormalization", "Add"], [1] * 4, [0] * 4),
        (
            "n = InstanceNormalization(x, cs, cb) k = Mul(n, g) y = Add(k, b)",
            ["InstanceNormalization"],
            [1, 4, 9, 16],
            [9, 12, 13, 12],
        ),
    ],
)
def test_becomes_one_normalization(check_pass, parse, body, operators, scale, bias):
    model = parse(f"{HEAD} {{ {body} }}", opset=21)
    infer_shapes.run(model)
    check_pass(recognize_group_norm, model, same_results=CLOSE)
    assert [node.op_type for node in model.graph] == operators
    norm = model.graph[0]
    assert norm.inputs[1].const_value.numpy().tolist() == scale
    assert norm.inputs[2].const_value.numpy().tolist() == bias


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "r = Reshape(x, groups)  n = InstanceNormalization(r, ones, zeros)  y = Reshape(n, other)",
            "the shape of the result may differ from that of the normalized value",
        ),
        (f"{GROUPED} z = Exp(n)  m = Reshape(n, full)  e = ReduceSum(z)  y = Add(m, e)", "'n' is needed elsewhere too"),
    ],
)
def test_near_misses(check_pass, parse, body, reason):
    text = f"agraph (float[N, 4, H, 4] x, int64[4] other) => (float[N, 4, a, b] y) <{CONSTANTS}> {{ {body} }}"
    model = parse(text, opset=21)
    infer_shapes.run(model)
    report = check_pass(recognize_group_norm, model, same_results=None)
    assert [miss.reason for miss in report.missed] == [reason]


def test_groups_that_do_not_divide_the_channels(check_pass, parse):
    text = """
    agraph (float[2, 4, 3, 4] x) => (float[2, 4, 3, 4] y)
        <int64[3] three = {0, 3, -1}, int64[4] full = {2, 4, 3, 4}, float[3] s = {1, 1, 1}, float[3] t = {0, 0, 0}> {
        r = Reshape(x, three)
        n = InstanceNormalization(r, s, t)
        y = Reshape(n, full)
    }
    """
    model = parse(text, opset=21)
    infer_shapes.run(model)
    report = check_pass(recognize_group_norm, model)
    assert [miss.reason for miss in report.missed] == ["3 groups do not divide 4 channels"]
