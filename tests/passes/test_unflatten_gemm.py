"""Linear layers that were exported as Gemm between reshapes."""

import pytest

from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.unflatten_gemm import unflatten_gemm

CONSTANTS = """int64[2] flat = {-1, 2}, int64[4] heads = {0, 4, 2, 1}, int64[3] back = {-1, 4, 3},
    int64[3] other = {-1, 3, 4},
    float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3, 2] t = {1, 2, 3, 4, 5, 6}, float[3] bias = {7, 8, 9}"""


def run(check_pass, parse, body):
    """The remaining operators, and the reasons of the misses."""
    text = f"agraph (float[N, 4, 2] x) => (float[N, a, b] y) <{CONSTANTS}> {{ m = Reshape(x, flat) {body} }}"
    model = parse(text, opset=18)
    infer_shapes.run(model)
    report = check_pass(unflatten_gemm, model, same_results=(1e-6, 1e-6))
    return [node.op_type for node in model.graph], [miss.reason for miss in report.missed]


@pytest.mark.parametrize(
    ("body", "operators"),
    [
        ("g = Gemm(m, w, bias)  y = Reshape(g, back)", ["MatMul", "Add"]),
        ("g = Gemm(m, w)  y = Reshape(g, back)", ["MatMul"]),
        ("g = MatMul(m, w)  y = Reshape(g, back)", ["MatMul"]),
        ("g = Gemm<transB=1>(m, t, bias)  y = Reshape(g, back)", ["MatMul", "Add"]),
        (
            "k = Reshape(x, heads)  n = Reshape(k, flat)  g = Gemm(n, w)  y = Reshape(g, back)",
            ["Reshape", "Reshape", "Reshape", "MatMul"],
        ),
        (
            "g = Gemm(m, w, bias)  z = Reshape(g, back)  h = Gemm(m, w)  u = Reshape(h, back)  y = Mul(z, u)",
            ["MatMul", "Add", "MatMul", "Mul"],
        ),
    ],
)
def test_becomes_a_product(check_pass, parse, body, operators):
    assert run(check_pass, parse, body) == (operators, [])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("g = Gemm<alpha=0.5>(m, w)  y = Reshape(g, back)", "the product or the bias is scaled"),
        ("g = Gemm(m, w)  y = Reshape(g, other)", "the shapes differ in more than the last axis"),
        ("g = Gemm(m, w)  z = Reshape(g, back)  s = ReduceSum(g)  y = Add(z, s)", "'g' is needed elsewhere too"),
        ("k = Exp(t)  g = Gemm<transB=1>(m, k)  y = Reshape(g, back)", "a matrix that is not constant is transposed"),
    ],
)
def test_near_misses(check_pass, parse, body, reason):
    operators, reasons = run(check_pass, parse, body)
    assert "Gemm" in operators and reasons == [reason]
