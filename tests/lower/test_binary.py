"""Functions of two elements, and of many, against onnxruntime and NumPy."""

import ml_dtypes
import numpy as np
import pytest

from compiler import RunError
from tests.scratch.row import TWO, rows

RANDOM = np.random.default_rng(3)
SHAPES = [
    ((3, 4), (3, 4)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 3, 4)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((2, 1, 4), (1, 3, 1)),
    ((5,), ()),
    ((0, 3), (3,)),
]


def numbers(shape, dtype="float32"):
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -20
        return np.asarray(RANDOM.integers(low, 21, shape)).astype(dtype)
    return np.asarray(RANDOM.standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "PRelu", "Less", "GreaterOrEqual", "Equal"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting(check_node, op_type, shapes):
    x, y = (numbers(shape) for shape in shapes)
    if (op_type == "PRelu" and len(shapes[0]) < len(shapes[1])) or (op_type == "PRelu" and shapes[0] == (2, 1, 4)):
        pytest.skip("PRelu's slope broadcasts to the input only")
    check_node(op_type, [x, y], opset=16, rtol=1e-6, atol=0)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Greater", "Equal"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_dtypes(check_node, op_type, dtype):
    y = numbers((4,), dtype)
    check_node(op_type, [numbers((3, 4), dtype), np.where(y == 0, 1, y).astype(dtype)], opset=14, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max"])
def test_small_and_unsigned_integers_wrap(check_node, op_type, dtype):
    limits = np.iinfo(dtype)
    x, y = np.array([limits.max, limits.min, 7, 100], dtype), np.array([2, 3, 2, 100], dtype)
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    exact = {
        "Add": [a + b for a, b in pairs],
        "Sub": [a - b for a, b in pairs],
        "Mul": [a * b for a, b in pairs],
        "Div": [abs(a) // b * (-1 if a < 0 else 1) for a, b in pairs],
        "Max": [max(pair) for pair in pairs],
    }
    wanted = np.array([value % 2**64 for value in exact[op_type]], "uint64").astype(dtype)
    check_node(op_type, [x, y], opset=14, rtol=0, atol=0, expected=[wanted])


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Div", "Pow"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_rounds_once(check_node, op_type, dtype):
    x, y = np.abs(numbers((3, 4))).astype(dtype), numbers((4,)).astype(dtype)
    function = {"Add": np.add, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}[op_type]
    wanted = function(x.astype("f4"), y.astype("f4")).astype(dtype)
    check_node(op_type, [x, y], opset=15, rtol=8e-3 if op_type == "Pow" else 0, atol=0, expected=[wanted])


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor", "Equal"])
def test_booleans(check_node, op_type):
    x, y = np.array([[True, False], [True, False]]), np.array([True, False])
    check_node(op_type, [x, y], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("op_type", "function"),
    [("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)],
)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_bits(check_node, op_type, function, dtype):
    x, y = np.array([[1, 2, 100]], dtype), np.array([[3], [7]], dtype)
    check_node(op_type, [x, y], opset=18, rtol=0, atol=0, expected=[function(x, y)])


@pytest.mark.parametrize(("direction", "wanted"), [("LEFT", [2, 64, 0]), ("RIGHT", [0, 4, 0])])
def test_shifts(check_node, direction, wanted):
    x, y = np.array([1, 16, 200], "uint8"), np.array([1, 2, 9], "uint8")
    check_node(
        "BitShift",
        [x, y],
        opset=11,
        attributes={"direction": direction},
        rtol=0,
        atol=0,
        expected=[np.array(wanted, "uint8")],
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(check_node, dtype, fmod):
    if np.dtype(dtype).kind == "f" and not fmod:
        pytest.skip("onnxruntime has no floored remainder of floats")
    x, y = np.array([-7, 7, -7, 7, 6], "i8").astype(dtype), np.array([3, 3, -3, -3, 3], "i8").astype(dtype)
    check_node("Mod", [x, y], opset=13, attributes={"fmod": fmod}, rtol=0, atol=0)


def test_floored_remainder_of_floats(check_node):
    x, y = np.array([-7.5, 7.5, -7.5, 7.5], "f4"), np.array([2, 2, -2, -2], "f4")
    check_node("Mod", [x, y], opset=28, rtol=0, atol=0, expected=[np.mod(x, y)])


@pytest.mark.parametrize("bases", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("exponents", ["float32", "float64", "int32", "int64"])
def test_powers_of_mixed_types(check_node, bases, exponents):
    x, y = np.array([0, 1, 2, 3, 7], bases), np.array([2, 5, 3, 2, 0], exponents)
    check_node("Pow", [x, y], opset=13, rtol=1e-6, atol=0)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 1.7])
def test_powers_with_one_exponent(check_node, exponent):
    x = np.array([-2, -0.0, 0, 0.5, 2, 3, np.inf, np.nan, 1e-20], "f4")
    check_node("Pow", [x, np.array(exponent, "f4")], opset=13, rtol=1e-6, atol=1e-44)


def test_nan_wins(check_node):
    x, y = np.array([np.nan, 1, -1, np.inf], "f4"), np.array([1, np.nan, 2, -np.inf], "f4")
    for op_type in ("Min", "Max"):
        check_node(op_type, [x, y], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize("op_type", ["Sum", "Mean", "Min", "Max"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_inputs(check_node, op_type, count):
    inputs = [numbers(shape) for shape in [(2, 3), (3,), (1,), (2, 1)][:count]]
    check_node(op_type, inputs, opset=13, rtol=1e-6, atol=1e-6)


def test_equal_strings(check_node):
    x, y = np.array([["a"], ["b"]], object), np.array(["a", "b", "c"], object)
    check_node("Equal", [x, y], opset=19, rtol=0, atol=0, expected=[x == y])


def test_swiglu(check_node):
    a, b = numbers((3, 4)), numbers((3, 4))
    wanted = (a.astype("f8") / (1 + np.exp(-2.0 * a.astype("f8"))) * b).astype("f4")
    check_node("SwiGLU", [a, b], opset=28, attributes={"alpha": 2.0}, rtol=1e-5, atol=1e-6, expected=[wanted])


def test_division_by_zero_is_an_error(node_model):
    import compiler

    session = compiler.load(compiler.compile(node_model("Div", [np.array([1, 2])] * 2, opset=14)))
    with pytest.raises(RunError, match="divided by zero"):
        session.run({"x0": np.array([1, 2]), "x1": np.array([1, 0])})


SCRATCH = [
    *rows("float float16 int64", TWO, "y = OP(x, z)", "Add Sub Mul Div Max Min Pow Mod<fmod=1> Equal Less"),
    *rows("float float16", TWO, "y = OP(x, z)", "Mean Sum PRelu SwiGLU"),
    *rows("float float16 int32", "T[n, 1] x, T[1, m] z", "y = OP(x, z)", "Add Max Pow Greater"),
    *rows("float", TWO, "y = OP(x, z)", "LessOrEqual GreaterOrEqual"),
    *rows("bool", TWO, "y = OP(x, z)", "And Or Xor Equal", n=6000),
    *rows("int32", TWO, "y = OP(x, z)", "BitwiseAnd BitwiseOr BitwiseXor Mod"),
    *rows("uint32", TWO, 'y = BitShift<direction = "LEFT">(x, z)'),
]
