"""The pass removes operators that do nothing, and keeps those that nearly do nothing."""

import pytest

from compiler.passes.drop_noops import drop_noops
from compiler.passes.merge_reshapes import merge_reshapes

HEAD = """agraph (float[N, 3, 4] x) => (float y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1},
    int64[1] far = {9223372036854775807},
    int64[3] three = {0, 1, 2}, int64[3] turned = {2, 1, 0}, int64[3] behind = {-3, -2, -1},
    int64[6] nothing = {0, 0, 0, 0, 0, 0},
    int64[6] shift = {0, 1, 0, 0, -1, 0}, int64[3] ones = {1, 1, 1}, float f = {1}, float z = {0}, bool off = {0},
    bool on = {1}, float[1, 1, 1, 1] wide = {1}, int64[3] own = {-1, 3, 4}, int64[4] broad = {2, 1, 1, 1},
    int64[2] tail = {3, 4}>"""
OLD = "agraph (float[N, 3, 4] x) => (float y)"


def kinds(model):
    return [node.op_type for node in model.graph]


def run(check_pass, parse, pass_, nodes, opset, head=HEAD):
    model = parse(f"{head} {{ {nodes}  y = Exp(a) }}", opset=opset)
    report = check_pass(pass_, model)
    return kinds(model), [missed.reason for missed in report.missed]


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ("a = Slice(x, zero, far, one)", 20),
        ("a = Slice(x, zero, far, one, one)", 20),
        ("a = Expand(x, ones)", 20),
        ("a = Reshape(x, own)", 20),
        ("a = Pad(x, nothing)", 20),
        ("a = Tile(x, ones)", 20),
        ("a = Concat<axis=1>(x)", 20),
        ("a = Sum(x)", 20),
        ("a = Max(x)", 20),
        ("a = Split<axis=1, num_outputs=1>(x)", 20),
        ("a = Dropout(x)", 20),
        ("a = Dropout(x, , off)", 20),
        ("a = Mul(f, x)", 20),
        ("a = Div(x, f)", 20),
        ("a = Pow(x, f)", 20),
        ("a = Sub(x, z)", 20),
        ("a = Gather<axis=1>(x, three)", 20),
        ("a = Gather<axis=1>(x, behind)", 20),
    ],
)
def test_operators_that_do_nothing_are_removed(check_pass, parse, nodes, opset):
    assert run(check_pass, parse, drop_noops, nodes, opset) == (["Exp"], [])


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("e = Expand(f, tail)  a = Add(x, e)", ["Add", "Exp"]),
        ("e = Expand(f, tail)  a = Div(e, x)", ["Div", "Exp"]),
        ("e = Expand(f, tail)  c = Less(x, f)  a = Where(c, x, e)", ["Less", "Where", "Exp"]),
        ("e = Expand(f, broad)  a = Mul(x, e)", ["Expand", "Mul", "Exp"]),
        ("e = Expand(x, broad)  a = Mul(e, e)", ["Expand", "Mul", "Exp"]),
    ],
)
def test_expanded_operands(check_pass, parse, nodes, left):
    assert run(check_pass, parse, drop_noops, nodes, 20)[0] == left


@pytest.mark.parametrize("kind", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_of_one(check_pass, kind):
    check_pass(
        drop_noops,
        f"agraph (float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) {{ a = Neg(x)  y = {kind}<blocksize = 1>(a) }}",
        """
        input x: float[1, 2, 3, 4]
        y = Neg(x)
        return y
        """,
    )


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Pad<pads=[0, 0, 0, 0, 0, 0]>(x)",
        "a = Dropout<ratio=0.5>(x)",
    ],
)
def test_operators_of_old_opsets_that_do_nothing_are_removed(check_pass, parse, nodes):
    assert run(check_pass, parse, drop_noops, nodes, 9, OLD) == (["Exp"], [])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("a = Slice(x, one, far, one)", "the shape changes"),
        ("a = Slice(x, minus, zero, one, minus)", "the steps are not one"),
        ("a = Expand(x, broad)", "the shape changes"),
        ("a = SpaceToDepth<blocksize=2>(x)", "the blocks are larger"),
        ("a = Pad(x, shift)", "it pads"),
        ("a = Mul(x, wide)", "the constant may enlarge the result"),
        ("a = Div(f, x)", None),
        ("a = Gather<axis=1>(x, turned)", "it takes only some elements, or in another order"),
        ("a = Gather(x, three)", "it takes only some elements, or in another order"),
        ("a, b = Split<axis=2, num_outputs=2>(x)", "there are several parts"),
        ("a = Dropout(x, , on)", "it may be in training mode"),
    ],
)
def test_operators_that_do_something_stay(check_pass, parse, nodes, reason):
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}", opset=20)
    report = check_pass(drop_noops, model, same_results=None)
    assert [missed.reason for missed in report.missed] == ([reason] if reason else [])
    assert len(kinds(model)) == 2


SHAPES = """agraph (float[N, 3, 4] x, float[A, B] u) => (float y)
    <int64[3] s3 = {0, 4, 3}, int64[2] s2 = {-1, 12}, int64[3] back = {-1, 3, 4},
    int64[1] one = {1}, int64[1] flat = {-1}, int64[2] zeros = {0, 0}, int64[1] last = {3}>"""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("b = Reshape(x, s3)  a = Reshape(b, s2)", ["Reshape", "Exp"]),
        ("b = Reshape(x, s2)  a = Reshape(b, back)", ["Exp"]),
        ("b = Unsqueeze(x, one)  a = Squeeze(b, one)", ["Exp"]),
        ("b = Flatten(x)  c = Unsqueeze(b, one)  a = Reshape(c, s2)", ["Reshape", "Exp"]),
        ("b = Reshape(u, flat)  c = Unsqueeze(b, one)  d = Squeeze(c, one)  a = Reshape(d, flat)", ["Reshape", "Exp"]),
        ("a = Reshape(u, zeros)", ["Exp"]),
        ("s = Shape(x)  a = Expand(x, s)", ["Exp"]),
        ("b = Reshape(x, s3)  c = Exp(b)  d = Reshape(b, s2)  e = Exp(d)  f = Reshape(c, s2)  a = Add(e, f)", None),
    ],
)
def test_reshapes(check_pass, parse, nodes, expected):
    model = parse(f"{SHAPES} {{ {nodes}  y = Exp(a) }}")
    check_pass(merge_reshapes, model)
    found = [kind for kind in kinds(model) if kind != "Shape"]
    assert found == expected or expected is None


def test_the_text_of_a_merged_reshape(check_pass):
    check_pass(
        merge_reshapes,
        """
        agraph (float[N, 3, 4] x) => (float[N, 12, 1] y) <int64[1] last = {2}> {
            a = Flatten(x)
            y = Unsqueeze(a, last)
        }
        """,
        """
        input x: float[N, 3, 4]
        constant last = int64[1] {2}
        constant shape = int64[3] {0, 12, 1}
        y = Reshape(x, shape)
        return y
        """,
    )


def test_a_shape_that_no_constant_can_say_stays(check_pass):
    text = """
        agraph (float[A, B] x, int64[4] s) => (float[C, D, E, F] y) <int64[1] zero = {0}> {
            a = Unsqueeze(x, zero)
            y = Reshape(a, s)
        }
        """
    report = check_pass(merge_reshapes, text, same_results=None)
    assert "the shape is not known" in [missed.reason for missed in report.missed]
    assert report.nodes_after == 2
