"""Nodes that become an epilogue: chains, diamonds, residuals, constants. Other nodes stay separate."""

import pytest

from compiler.ir import origin
from compiler.passes.fuse_epilogues import fuse_epilogues
from compiler.passes.infer_shapes import infer_shapes

ELEMENTWISE = {"Relu", "Sigmoid", "Mul", "Add", "Tanh", "PRelu", "Clip", "Max"}
ROOTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
fuse = fuse_epilogues(lambda node: node.op_type in ROOTS, lambda node: node.op_type in ELEMENTWISE)

HEAD = "(float[N, 2, H, W] x, float[N, 2, H, W] r, float[2, 2, 1, 1] w)"
TYPE = "float[N, 2, H, W]"


def run(check_pass, nodes, outputs="y", head=HEAD, declared="", kind=TYPE):
    """The names of the rules that fused nodes, and the reasons of the near misses."""
    results = ", ".join(f"{kind} {name}" for name in outputs.split())
    report = check_pass(fuse, f"agraph {head} => ({results}) {declared} {{ {nodes} }}", same_results=None)
    return [fired.rule for fired in report.fired], [missed.reason for missed in report.missed]


def test_an_epilogue_as_text(check_pass):
    check_pass(
        fuse,
        f"""
        agraph {HEAD} => ({TYPE} y) <float six = {{6}}, float[2, 1, 1] slope = {{0.1, 0.2}}> {{
            c = Conv(x, w)
            d = Clip(c, , six)
            e = Add(r, d)
            y = PRelu(e, slope)
        }}
        """,
        """
        input x: float[N, 2, H, W]
        input r: float[N, 2, H, W]
        input w: float[2, 2, 1, 1]
        constant six = float[] {6}
        constant slope = float[2,1,1] {0.1, 0.2}
        y = candle.plan.Conv(x, w, r, slope, operands=2)
          epilogue:
            input result: float[N, 2, H, W]
            input operand0: float[N, 2, H, W]
            input operand1: float[2, 1, 1]
            constant number0 = float[] {6}
            value0 = Clip(result, _, number0)
            value1 = Add(operand0, value0)
            value2 = PRelu(value1, operand1)
            return value2
        return y
        """,
        same_results=None,
    )


@pytest.mark.parametrize(
    ("nodes", "fused"),
    [
        ("c = Conv(x, w)  y = Relu(c)", ["fuse Conv + Relu"]),
        ("c = Conv(x, w)  s = Sigmoid(c)  y = Mul(c, s)", ["fuse Conv + Sigmoid + Mul"]),
        ("c = Conv(x, w)  s = Sigmoid(c)  t = Tanh(c)  y = Mul(s, t)", ["fuse Conv + Sigmoid + Tanh + Mul"]),
        (
            "c = Conv(x, w)  s = Sigmoid(c)  m = Mul(c, s)  a = Add(m, r)  y = Relu(a)",
            ["fuse Conv + Sigmoid + Mul + Add + Relu"],
        ),
        ("c = Conv(x, w)  d = Conv(r, w)  a = Add(c, d)  y = Relu(a)", ["fuse Conv + Add + Relu"]),
        ("c = Conv(x, w)  d = Relu(c)  e = Conv(d, w)  y = Tanh(e)", ["fuse Conv + Relu", "fuse Conv + Tanh"]),
        ("c = Conv(x, w)  d = Add(c, c)  y = Mul(d, d)", ["fuse Conv + Add + Mul"]),
    ],
)
def test_what_is_fused(check_pass, nodes, fused):
    assert run(check_pass, nodes) == (fused, [])


@pytest.mark.parametrize(
    ("nodes", "outputs", "fused", "kept"),
    [
        ("c = Conv(x, w)  y = Relu(c)", "y c", [], "c"),
        ("c = Conv(x, w)  s = Relu(c)  y = Tanh(s)  z = Sqrt(s)", "y z", ["fuse Conv + Relu"], "s"),
        ("c = Conv(x, w)  s = Relu(c)  y = Tanh(c)", "y s", [], "s"),
        ("c = Conv(x, w)  s = Sqrt(c)  y = Add(c, s)", "y", [], "c"),
    ],
)
def test_a_value_that_is_read_elsewhere_is_kept(check_pass, nodes, outputs, fused, kept):
    found, missed = run(check_pass, nodes, outputs)
    assert found == fused
    assert missed == [f"{kept!r} is needed elsewhere too"]


@pytest.mark.parametrize(
    ("operand", "fits"),
    [
        ("float[2, 1, 1]", True),
        ("float[N, 2, H, W]", True),
        ("float[1, 1, 1, W]", True),
        ("float[W]", True),
        ("float", True),
        ("float[1, N, 2, H, W]", False),
        ("float[N, 2, H, V]", False),
        ("float[7, 1, 1]", False),
        ("float[M, 1, 1, 1]", False),
    ],
)
def test_an_operand_must_not_enlarge_the_result(check_pass, operand, fits):
    head = f"(float[N, 2, H, W] x, {operand} r, float[2, 2, 1, 1] w)"
    fused, missed = run(check_pass, "c = Conv(x, w)  y = Add(c, r)", head=head, kind="float")
    assert fused == (["fuse Conv + Add"] if fits else [])
    assert missed == ([] if fits else ["'r' may be larger than the result"])


def test_other_types_are_not_fused(check_pass):
    head = "(double[N, 2] x, double[2, 3] w)"
    assert run(check_pass, "c = MatMul(x, w)  y = Relu(c)", head=head, kind="double") == (
        [],
        ["the type is DOUBLE, not float32"],
    )


def test_absent_inputs_keep_their_place(parse):
    model = parse("agraph (float[N, 2] x, float[2, 3] w) => (float y) { c = Gemm(x, w, )  y = Relu(c) }")
    fuse_shapes(model)
    (node,) = model.graph
    assert node.attributes["operands"].as_int() == len(node.inputs)
    assert origin.of(node).nodes == ("Gemm(c)", "Relu(y)")


def test_inside_nested_graphs(parse):
    model = parse(
        """
        agraph (float[N, 2] x, float[2, 2] w, bool b) => (float y) {
            y = If(b) <
                then_branch = g1 () => (float t) { c = MatMul(x, w)  t = Relu(c) },
                else_branch = g2 () => (float e) { d = MatMul(x, w)  e = Sqrt(d) }
            >
        }
        """
    )
    assert [fired.rule for fired in fuse_shapes(model).fired] == ["fuse MatMul + Relu"]


def fuse_shapes(model):
    infer_shapes.run(model)
    return fuse.run(model)
