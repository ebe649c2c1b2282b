"""Einsum of two matrices, or stacks of them, is a product."""

import numpy as np
import pytest

from compiler.passes.expand_einsum import expand_einsum

CLOSE = (1e-5, 1e-5)


def graph(equation, a, b):
    return f'agraph (float{a} a, float{b} b) => (float y) {{ y = Einsum<equation = "{equation}">(a, b) }}'


@pytest.mark.parametrize(
    ("equation", "a", "b", "left"),
    [
        ("ij,jk->ik", "[2,3]", "[3,4]", ["MatMul"]),
        ("ij,jk->ki", "[2,3]", "[3,4]", ["Transpose", "Transpose", "MatMul"]),
        ("bhid,bhjd->bhij", "[2,N,3,5]", "[2,N,4,5]", ["Transpose", "MatMul"]),
        ("bhij, bhjd -> bhid", "[2,3,4,5]", "[2,3,5,6]", ["MatMul"]),
        ("bihd,bjhd->bhij", "[2,4,3,5]", "[2,6,3,5]", ["Transpose", "Transpose", "MatMul"]),
        ("bhij,bjhd->bihd", "[2,3,4,5]", "[2,5,3,6]", ["Transpose", "MatMul", "Transpose"]),
        ("bnd,bmd->bmn", "[2,4,5]", "[2,6,5]", ["Transpose", "MatMul"]),
    ],
)
def test_products(check_pass, parse, equation, a, b, left):
    model = parse(graph(equation, a, b))
    check_pass(expand_einsum, model, same_results=CLOSE)
    assert [node.op_type for node in model.graph] == left


@pytest.mark.parametrize(
    ("equation", "a", "b", "reason"),
    [
        ("ij,jk", "[2,3]", "[3,4]", "it is not a matrix product"),
        ("ij,ij->ij", "[2,3]", "[2,3]", "it is not a matrix product"),
        ("ijk,kl->l", "[2,3,4]", "[4,5]", "it is not a matrix product"),
        ("...ij,...jk->...ik", "[2,3,4]", "[2,4,5]", "it is not a matrix product"),
        ("ii,ij->ij", "[3,3]", "[3,4]", "it is not a matrix product"),
        ("bij,bjk->bik", "[1,3,4]", "[2,4,5]", "sizes are not known to be the same on both sides"),
        ("bij,bjk->bik", "[N,3,4]", "[M,4,5]", "sizes are not known to be the same on both sides"),
    ],
)
def test_other_equations_stay(check_pass, equation, a, b, reason):
    report = check_pass(expand_einsum, graph(equation, a, b), same_results=None)
    assert [miss.reason for miss in report.missed] == [reason]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exporter", ["dynamo", "script"])
def test_attention_from_torch(check_export, exporter):
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    def attention(q, k, v):
        weights = (torch.einsum("bihd,bjhd->bhij", q, k) * 0.3).softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", weights, v)

    arrays = [np.random.default_rng(0).normal(size=(2, length, 4, 8)).astype("float32") for length in (6, 5, 5)]
    found = check_export(attention, arrays, exporter=exporter, tolerance=1e-5)
    assert found == ["Reshape", "Reshape", "Reshape", "Attention", "Reshape"]
