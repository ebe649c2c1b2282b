"""Transposes merge, sink and cancel; the results stay the same bit by bit."""

import pytest

from compiler.passes.cancel_transposes import cancel_transposes

IN = "float[N, 3, 4, 5] x"
TO = "perm=[0, 2, 3, 1]"
BACK = "perm=[0, 3, 1, 2]"


def run(check_pass, parse, nodes, expected, inputs=IN, declared="", opset=20, results=(0, 0)):
    """Runs the pass; compares the operators that are left. Gives the report."""
    model = parse(f"agraph ({inputs}) => (float y) {declared} {{ {nodes} }}", opset=opset)
    report = check_pass(cancel_transposes, model, same_results=results)
    found = []
    for node in model.graph:
        perm = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else ""
        found.append(f"{node.op_type}{perm}")
    assert " ".join(found) == expected
    return report


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (f"a = Transpose<{TO}>(x)  b = Transpose<{BACK}>(a)  y = Relu(b)", "Relu"),
        (f"a = Transpose<{TO}>(x)  b = Transpose<{TO}>(a)  y = Relu(b)", "Relu Transpose[0, 3, 1, 2]"),
        (f"a = Transpose<{TO}>(x)  b = Relu(a)  y = Transpose<{BACK}>(b)", "Relu"),
        ("a = Transpose(x)  y = Transpose(a)", "Reshape"),
        (
            f"a = Transpose<{TO}>(x)  s = Sigmoid(a)  m = Mul(a, s)  b = Transpose<{BACK}>(m)  y = Exp(b)",
            "Sigmoid Mul Exp",
        ),
    ],
)
def test_pairs(check_pass, parse, nodes, expected):
    run(check_pass, parse, nodes, expected)


@pytest.mark.parametrize(
    "constant",
    [
        "float[3] c = {1, 2, 3}",
        "float c = {2}",
        "float[4, 1, 1] c = {1, 2, 3, 4}",
        "float[1, 1, 5, 1] c = {1, 2, 3, 4, 5}",
    ],
)
@pytest.mark.parametrize("order", ["a, c", "c, a"])
def test_constants_are_turned(check_pass, parse, constant, order):
    nodes = f"a = Transpose<{TO}>(x)  s = Sub({order})  b = Transpose<{BACK}>(s)  y = Exp(b)"
    run(check_pass, parse, nodes, "Sub Exp", declared=f"<{constant}>")


def test_residuals_in_channels_last_layout(check_pass, parse):
    nodes = f"""
        c = Conv(x, w)  d = Transpose<{TO}>(c)  e = Relu(d)  f = Transpose<{BACK}>(e)
        g = Conv(f, w)  h = Transpose<{TO}>(g)  i = Add(h, e)  j = Relu(i)  k = Transpose<{BACK}>(j)
        y = Conv(k, w)
        """
    weights = f"<float[3, 3, 1, 1] w = {{{', '.join(map(str, range(9)))}}}>"
    run(check_pass, parse, nodes, "Conv Relu Conv Add Relu Conv", declared=weights)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = Concat<axis=3>(a, b)", "Concat Exp"),
        ("c = Concat<axis=-1>(a, b)", "Concat Exp"),
    ],
)
def test_joins(check_pass, parse, nodes, expected):
    text = f"a = Transpose<{TO}>(x)  b = Transpose<{TO}>(z)  {nodes}  d = Transpose<{BACK}>(c)  y = Exp(d)"
    run(check_pass, parse, text, expected, inputs=f"{IN}, float[N, 2, 4, 5] z")


@pytest.mark.parametrize(
    ("reduction", "opset", "expected"),
    [
        ("ReduceMean<axes=[1, 2], keepdims=0>(a)", 17, "ReduceMean Exp"),
        ("ReduceMean<axes=[-3, 2]>(a)", 17, "ReduceMean Exp Reshape"),
        ("ReduceMax<keepdims=0>(a)", 17, "ReduceMax Exp"),
        ("ReduceSum<keepdims=0>(a, last)", 20, "ReduceSum Exp"),
    ],
)
def test_reductions(check_pass, parse, reduction, opset, expected):
    nodes = f"a = Transpose<{TO}>(x)  r = {reduction}  y = Exp(r)"
    declared, rounded = "<int64[1] last = {-1}>", (1e-6, 1e-6)
    run(check_pass, parse, nodes, expected, declared=declared, opset=opset, results=rounded)


@pytest.mark.parametrize(
    ("inputs", "perm", "expected"),
    [
        ("float[N, 1, 4, 1] x", TO, "Reshape Exp"),
        ("float[1, 1, H, W] x", TO, "Transpose[0, 2, 3, 1] Exp"),
        ("float[1, H, 1, W] x", "perm=[2, 1, 0, 3]", "Exp"),
        ("float[A, 1, B] x", "perm=[0, 2, 1]", "Reshape Exp"),
        ("float[1, A, B, 1] x", "perm=[3, 1, 2, 0]", "Exp"),
        ("float[2, 1, 3] x", "perm=[1, 0, 2]", "Reshape Exp"),
        ("float[2, 0, 1] x", "perm=[0, 2, 1]", "Transpose[0, 2, 1] Exp"),
        ("float[2, 3, 1] x", "perm=[1, 2, 0]", "Exp Transpose[1, 2, 0]"),
    ],
)
def test_axes_of_size_one(check_pass, parse, inputs, perm, expected):
    model = parse(f"agraph ({inputs}) => (float y) {{ a = Transpose<{perm}>(x)  y = Exp(a) }}")
    check_pass(cancel_transposes, model)
    kinds = {node.op_type for node in model.graph}
    assert ("Reshape" in kinds) == ("Reshape" in expected)


def test_the_text_of_a_reshape(check_pass):
    check_pass(
        cancel_transposes,
        f"agraph (float[N, 1, 4, 1] x) => (float[N, 4, 1, 1] y) {{ y = Transpose<{TO}>(x) }}",
        """
        input x: float[N, 1, 4, 1]
        constant shape = int64[4] {0, 4, 1, 1}
        y = Reshape(x, shape)
        return y
        """,
    )


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            f"a = Transpose<{TO}>(x)  s = Add(a, a)  t = Relu(s)  z = Softmax(a)  y = Mul(z, t)",
            "the transposed input is needed elsewhere too",
        ),
        (
            f"a = Transpose<{TO}>(x)  y = Add(a, big)",
            "the shape of the result differs from that of the transposed input",
        ),
    ],
)
def test_other_transposes_stay(check_pass, parse, nodes, reason):
    big = "<float[2, 1, 1, 1, 1] big = {1, 2}>"
    model = parse(f"agraph ({IN}) => (float y) {big} {{ {nodes} }}")
    report = check_pass(cancel_transposes, model)
    assert reason in [missed.reason for missed in report.missed]
    assert [node.op_type for node in model.graph].count("Transpose") == 1
