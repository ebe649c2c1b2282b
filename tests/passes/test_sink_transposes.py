"""Transposes sink below operators that keep the order of axes, and the results stay the same."""

import pytest

from compiler.passes.cancel_transposes import cancel_transposes

HEAD = """agraph (float[2, 3, 4, 5] x, float[2, M, 12] z, float[5, 7] w) => (float y)
    <int64[2] rows = {6, 20}, int64[4] heads = {0, 0, 3, 4}, int64[3] folded = {3, 8, 5}, int64[4] apart = {3, 2, 4, 5},
    int64[5] cut = {4, 2, 3, 5, 1}, int64[3] joined = {2, 4, 15}, int64[2] sizes = {1, 2}, int64[1] one = {1},
    int64[1] zero = {0}, int64[1] back = {-2},
    int64 second = {1}, int64[2] both = {0, 1}, int64[5] units = {1, 2, 1, 12, 5}>"""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = Transpose<perm = [2, 0, 1, 3]>(x)  y = MatMul(a, w)", "MatMul Transpose[2, 0, 1, 3]"),
        ("a = Transpose<perm = [0, 1, 3, 2]>(x)  b = Exp(w)  c = Transpose(b)  y = MatMul(c, a)", None),
        (
            "a = Transpose<perm = [1, 0, 2, 3]>(x) b = MatMul(a, w) c = Softmax(a)  d = MatMul(c, w) y = Add(d, b)",
            None,
        ),
        (
            "a = Transpose<perm = [1, 0, 2, 3]>(x)  b, c = Split<axis = 0>(a, sizes)  y = Concat<axis = 0>(c, b)",
            "Split Concat Transpose[1, 0, 2, 3]",
        ),
        ("a = Transpose<perm = [3, 0, 1, 2]>(x)  y = Gather<axis = 2>(a, second)", "Gather Transpose[2, 0, 1]"),
        ("a = Transpose<perm = [1, 0, 2, 3]>(x)  y = Gather<axis = 0>(a, second)", "Gather"),
        ("a = Transpose<perm = [1, 0, 2, 3]>(x)  y = Gather<axis = 0>(a, both)", None),
        ("a = Transpose<perm = [1, 0, 2]>(z)  y = Reshape(a, heads)", "Reshape Transpose[1, 0, 2, 3]"),
        ("a = Transpose<perm = [2, 3, 0, 1]>(x)  y = Reshape(a, rows)", None),
        ("a = Transpose<perm = [2, 0, 1, 3]>(x)  y = Reshape(a, cut)", "Reshape Transpose[2, 0, 1, 3, 4]"),
        ("a = Transpose<perm = [0, 2, 1, 3]>(x)  y = Reshape(a, joined)", None),
        ("a = Transpose<perm = [2, 3, 0, 1]>(x)  y = Flatten<axis = 2>(a)", "Reshape Transpose[1, 0]"),
        ("a = Transpose<perm = [1, 0, 2, 3]>(x)  y = Reshape(a, folded)", None),
        (
            "a = Unsqueeze(x, zero)  b = Transpose<perm = [3, 1, 2, 0, 4]>(a)  y = Squeeze(b, back)",
            "Transpose[2, 0, 1, 3]",
        ),
        ("a = Transpose<perm = [1, 0, 2]>(z)  y = Unsqueeze(a, one)", "Reshape Transpose[2, 0, 1, 3]"),
        (
            "a = Transpose<perm = [1, 0, 2, 3]>(x)  b = Reshape(a, folded)  y = Reshape(b, apart)",
            "Transpose[1, 0, 2, 3]",
        ),
    ],
)
def test_sinking(check_pass, parse, nodes, expected):
    model = parse(f"{HEAD} {{ {nodes} }}")
    before = [node.op_type for node in model.graph]
    check_pass(cancel_transposes, model, same_results=(1e-5, 1e-5))
    found = []
    for node in model.graph:
        perm = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else ""
        found.append(f"{node.op_type}{perm}")
    if expected is None:
        assert [node.op_type for node in model.graph] == before
    else:
        assert " ".join(found) == expected
