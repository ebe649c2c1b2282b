"""Slices of slices, slices of single elements, and slices of all parts of a value."""

import numpy as np
import onnx_ir as ir
import pytest

import compiler
from compiler.passes.merge_slices import merge_slices
from compiler.passes.split_slices import split_slices

HEAD = """agraph (float[2, N, 12] x) => (float y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6},
    int64[1] eight = {8}, int64[1] minus = {-1}, int64[1] far = {9223372036854775807}, int64[1] twelve = {12},
    int64[1] back = {-9223372036854775807}, int64 first = {0}, int64 second = {1}, int64 third = {-1},
    int64[4] packed = {0, 0, 3, 4}, int64[5] heads = {0, 0, 3, 2, 2}, int64[4] inner = {0, 0, 4, 3}>"""


def run(check_pass, parse, pass_, nodes):
    model = parse(f"{HEAD} {{ {nodes} }}")
    report = check_pass(pass_, model)
    return [node.op_type for node in model.graph if node.op_type != "Exp"], [miss.reason for miss in report.missed]


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Slice(x, one, far, two)  b = Slice(a, two, eight, two)",
        "a = Slice(x, one, far, two)  b = Slice(a, minus, far, two)",
        "a = Slice(x, one, far, two, two)  b = Slice(a, one, far, two, two)",
        "a = Slice(x, one, far, two)  b = Slice(a, one, two, one)",
        "a = Slice(x, zero, two, one)  b = Slice(a, one, far, one)",
        "a = Slice(x, one, far, one, two)  b = Slice(a, zero, one, one)",
        "a = Slice(x, two, far, minus)  b = Slice(a, zero, minus, two, four)",
        "a = Slice(x, eight, far, one)  b = Slice(a, one, far, one)",
        "a = Slice(x, zero, far, one, far)  b = Slice(a, far, far, one, far)",
    ],
)
def test_slices_of_slices(check_pass, parse, nodes):
    assert run(check_pass, parse, merge_slices, f"{nodes}  y = Exp(b)") == (["Slice"], [])


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Slice(x, minus, back, two, minus)  b = Slice(a, two, eight, two)",
        "a = Slice(x, minus, far, one)  b = Slice(a, zero, one, one)",
    ],
)
def test_slices_that_stay(check_pass, parse, nodes):
    left, missed = run(check_pass, parse, merge_slices, f"{nodes}  y = Exp(b)")
    assert left == ["Slice", "Slice"] and "starts or ends are unknown" in missed[0]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("a = Slice(x, four, six, two, two)  b = Squeeze(a, two)", ["Gather"]),
        ("a = Slice(x, minus, far, two)  b = Squeeze(a, two)", ["Gather"]),
        ("a = Slice(x, minus, far, two)  b = Squeeze(a, minus)", ["Gather"]),
        ("a = Slice(x, zero, one, zero)  b = Squeeze(a, zero)", ["Gather"]),
        ("a = Slice(x, zero, one, one)  b = Squeeze(a, one)", ["Slice", "Squeeze"]),
        ("c, d = Split<axis = 0, num_outputs = 2>(x)  b = Squeeze(d, zero)", ["Gather"]),
    ],
)
def test_single_places(check_pass, parse, nodes, left):
    assert run(check_pass, parse, merge_slices, f"{nodes}  y = Exp(b)")[0] == left


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("a = Slice(x, zero, four, two) b = Slice(x, four, far, two) y = Concat<axis=2>(b, a)", ["Split", "Concat"]),
        ("b = Slice(x, four, far, two) a = Slice(x, zero, four, minus) y = Concat<axis=2>(a, b)", ["Split", "Concat"]),
        ("a = Slice(x, zero, one, zero) b = Slice(x, one, two, zero) y = Add(a, b)", ["Split", "Add"]),
        ("a = Slice(x, zero, six, two) b = Slice(x, six, far, two) c = Exp(a) y = Add(c, b)", ["Split", "Add"]),
        ("a = Slice(x, zero, six, two) b = Slice(x, four, far, two) y = Concat<axis=2>(a, b)", None),
        ("a = Slice(x, zero, four, two) b = Slice(x, four, eight, two) y = Add(a, b)", None),
        ("a = Slice(x, zero, far, two, two) b = Slice(x, one, far, two, two) y = Add(a, b)", None),
        ("a = Slice(x, zero, four, one) b = Slice(x, four, far, one) y = Concat<axis=1>(b, a)", None),
    ],
)
def test_parts_of_one_value(check_pass, parse, nodes, left):
    found, _ = run(check_pass, parse, split_slices, nodes)
    assert found == left or (left is None and "Split" not in found)


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("r = Reshape(x, packed) a = Gather<axis=2>(r, first)", ["Slice", "Reshape"]),
        ("r = Reshape(x, heads) a = Gather<axis=2>(r, third)", ["Slice", "Reshape"]),
        ("r = Reshape(x, inner) a = Gather<axis=3>(r, second)", ["Reshape", "Gather"]),
        ("r = Reshape(x, packed) a = Gather<axis=1>(r, first)", ["Reshape", "Gather"]),
        ("r = Reshape(x, packed) a = Gather<axis=2>(r, one)", ["Reshape", "Gather"]),
    ],
)
def test_places_of_an_axis_that_a_reshape_cut_off(check_pass, parse, nodes, left):
    assert run(check_pass, parse, split_slices, f"{nodes}  y = Exp(a)")[0] == left


X = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
EXPORTED = {
    "halves": (lambda x: x[..., :3] * x[..., 3:], ["Split", "Binary"]),
    "unbind": (lambda x: sum(x.unbind(1)), ["Gather"] * 4 + ["Elementwise"]),
    "slices": (lambda x: x[:, 1:][:, :2, ::2], ["Slice"]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPORTED)
def test_exported_from_torch(check_export, name):
    function, expected = EXPORTED[name]
    assert check_export(function, [X], tolerance=0) == expected


OLD = {
    "a part of a reshape": """r = Reshape(x, t)
        g = Gather<axis=1>(r, p)
        y = Neg(g)""",
    "slices of slices": """a = Slice<starts=[1], ends=[6], axes=[1]>(x)
        b = Slice<starts=[2], ends=[9], axes=[1]>(a)
        y = Neg(b)""",
    "slices joined": """a = Slice<starts=[3], ends=[4], axes=[1]>(x)
        b = Slice<starts=[4], ends=[-1], axes=[1]>(x)
        c = Slice<starts=[-1], ends=[9], axes=[-1]>(x)
        d = Concat<axis=-1>(a, b, c)
        y = Neg(d)""",
}


@pytest.mark.parametrize("case", OLD)
def test_bounds_that_are_attributes(parse, case):
    constants = "<int64[3] t = {2, 2, 3}, int64 p = {1}>"
    model = parse(f"agraph (float[2, 6] x) => (float[2, 3] y) {constants} {{ {OLD[case]} }}", opset=9)
    plan, x = compiler.compile(ir.to_proto(model)), np.arange(12, dtype=np.float32).reshape(2, 6)
    assert np.array_equal(compiler.load(plan).run({"x": x})["y"], -x[:, 3:])
