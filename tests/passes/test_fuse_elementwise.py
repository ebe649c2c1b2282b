"""Elementwise nodes that the pass fuses: chains, diamonds, smaller operands. Other nodes stay separate."""

import pytest

from compiler.lower.program import is_elementwise
from compiler.passes.fuse_elementwise import fuse_elementwise

fuse = fuse_elementwise(is_elementwise)
HEAD = "(float[N, C] x, float[N, C] z, float[C] b, bool[N, C] m)"


def run(check_pass, nodes, outputs="y", declared=""):
    """The names of the rules that fused nodes."""
    results = ", ".join(f"float[N, C] {name}" for name in outputs.split())
    report = check_pass(fuse, f"agraph {HEAD} => ({results}) {declared} {{ {nodes} }}", same_results=None)
    return [fired.rule for fired in report.fired]


def test_a_program_as_text(check_pass):
    check_pass(
        fuse,
        f"""
        agraph {HEAD} => (float[N, C] y) <float half = {{0.5}}> {{
            t = Mul(x, half)
            u = Add(t, b)
            y = Relu(u)
        }}
        """,
        """
        input x: float[N, C]
        input z: float[N, C]
        input b: float[C]
        input m: bool[N, C]
        constant half = float[] {0.5}
        y = candle.plan.Elementwise(x, b)
          body:
            input operand0: float[N, C]
            input operand1: float[C]
            constant number0 = float[] {0.5}
            value0 = Mul(operand0, number0)
            value1 = Add(value0, operand1)
            value2 = Relu(value1)
            return value2
        return y
        """,
        same_results=None,
    )


@pytest.mark.parametrize(
    ("nodes", "fused"),
    [
        ("t = Relu(x)  y = Exp(t)", ["fuse Relu + Exp"]),
        ("t = Sigmoid(x)  y = Mul(x, t)", ["fuse Sigmoid + Mul"]),
        ("t = Exp(x)  u = Neg(t)  v = Abs(t)  y = Add(u, v)", ["fuse Exp + Neg + Abs + Add"]),
        ("t = Less(x, z)  y = Where(t, x, z)", ["fuse Less + Where"]),
        ("y = Relu(x)", []),
        # A small operand is computed once, not for every row.
        ("t = Exp(b)  y = Add(x, t)", []),
        # A truth value from outside is no float.
        ("t = Relu(x)  y = Where(m, t, z)", []),
        ("t = Relu(x)  u = Where(m, t, z)  v = Exp(u)  y = Neg(v)", ["fuse Exp + Neg"]),
        # Another node between.
        ("t = Relu(x)  u = Softmax(t)  y = Exp(u)", []),
    ],
)
def test_what_is_fused(check_pass, nodes, fused):
    assert run(check_pass, nodes) == fused


def test_a_value_that_is_needed_elsewhere_stays(check_pass):
    assert run(check_pass, "t = Relu(x)  y = Exp(t)", outputs="y t") == []


@pytest.mark.parametrize(
    ("nodes", "outputs", "reason"),
    [
        ("t = Relu(x)  y = Exp(t)", "y t", "'t' is needed elsewhere too"),
        ("t = Exp(b)  y = Add(x, t)", "y", "'t' is smaller than the result"),
    ],
)
def test_why_not(check_pass, nodes, outputs, reason):
    results = ", ".join(f"float[N, C] {name}" for name in outputs.split())
    report = check_pass(fuse, f"agraph {HEAD} => ({results}) {{ {nodes} }}", same_results=None)
    assert [missed.reason for missed in report.missed] == [reason]


def test_long_chains_become_several(check_pass):
    chain = "  ".join(f"t{i + 1} = Relu(t{i})" for i in range(20))
    assert len(run(check_pass, f"t0 = Exp(x)  {chain}  y = Neg(t20)")) == 2
