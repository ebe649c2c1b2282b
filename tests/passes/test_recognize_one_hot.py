"""A product with one-hot vectors takes rows of a table."""

import numpy as np
import onnx_ir as ir
import pytest

import compiler
from compiler.passes.recognize_one_hot import recognize_one_hot

MANY = ", ".join(["1"] * 24)
HEAD = f"""agraph (int64[2, 5, 1] x, float[2, 5, 1] f) => (float[2, 5, 3] y)
    <int64[1, 4] classes = {{0, 1, 2, 3}}, int64[4] flat = {{0, 1, 2, 3}}, int64[4] others = {{0, 1, 2, 4}},
    float[4] real = {{0, 1, 2, 3}}, float[2, 4, 3] many = {{{MANY}}},
    float[4, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12}}>"""


@pytest.mark.parametrize("classes", ["x, classes", "flat, x"])
def test_rows_are_taken(check_pass, parse, classes):
    model = parse(f"{HEAD} {{ e = Equal({classes})  c = Cast<to = 1>(e)  y = MatMul(c, w) }}")
    check_pass(recognize_one_hot, model)
    assert [node.op_type for node in model.graph] == ["Clip", "Squeeze", "Gather"]


def test_places_that_are_no_class_give_zeros(parse):
    model = parse(f"{HEAD} {{ e = Equal(x, classes)  c = Cast<to = 1>(e)  y = MatMul(c, w) }}")
    x = np.array([0, 3, 4, -1, 2**40, -(2**40), 1, 2, 0, 5]).reshape(2, 5, 1)
    recognize_one_hot.run(model)
    session = compiler.load(compiler.compile(ir.serde.serialize_model(model)))
    w = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, -12], [0, 0, 0]], np.float32)
    rows = np.where((x >= 0) & (x < 4), x, 4)[..., 0]
    (y,) = session.run({"x": x, "f": x.astype(np.float32)}).values()
    assert np.array_equal(y, w[rows])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("e = Equal(f, real)  c = Cast<to = 1>(e)  y = MatMul(c, w)", "the indices are not signed integers"),
        ("e = Equal(x, others)  c = Cast<to = 1>(e)  y = MatMul(c, w)", "the classes are not counted from 0"),
        ("e = Equal(x, flat)  c = Cast<to = 1>(e)  y = MatMul(c, many)", "it is not a table of finite numbers"),
    ],
)
def test_other_products(check_pass, parse, nodes, reason):
    report = check_pass(recognize_one_hot, parse(f"{HEAD} {{ {nodes} }}"))
    assert [missed.reason[: len(reason)] for missed in report.missed] == [reason]
