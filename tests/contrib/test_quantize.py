import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, integers, normal

X = 5 * normal(2, 3, 8)
SCALE, SCALES = np.array(0.1, np.float32), np.float32([0.1, 0.2, 0.05])
FEW = (0.5 + np.abs(normal(3))).astype(np.float32)
A, B = normal(2, 3, 8), integers(-128, 128, 8, 5, dtype=np.int8)
BIAS, EACH = normal(5), (0.01 + np.abs(normal(5)) / 100).astype(np.float32)
U8, S8 = integers(0, 256, 3, 8, dtype=np.uint8), integers(-128, 128, 3, 8, dtype=np.int8)
RIGHT = integers(0, 256, 8, 5, dtype=np.uint8)
ONE, FIVE = np.array(0.02, np.float32), np.array(0.1, np.float32)
C = integers(-500, 500, 5, dtype=np.int32)
ROWS = {0: "B S _"}


def zero(kind: str, *values: int) -> Array:
    return np.array(values if len(values) > 1 else values[0]).astype(kind)


HALVES = [each.astype(np.float16) for each in (ONE, EACH, BIAS)]

CASES = [
    *(
        case("QuantizeLinear", X, SCALE, zero(kind, 3), name=kind, dims=ROWS)
        for kind in ("uint8", "int8", "int16", "uint16")
    ),
    *(case("QuantizeLinear", X, np.array(1, np.float32), zero(kind, 3), name=kind) for kind in ("uint4", "int4")),
    case("QuantizeLinear", X, SCALE, name="without zero point", dims=ROWS),
    case("QuantizeLinear", X, SCALES, zero("int8", 3, -2, 0), name="axis 1", axis=1, dims=ROWS),
    case("QuantizeLinear", X.reshape(2, 8, 3), SCALES, zero("uint8", 3, 2, 0), name="axis -1", axis=-1),
    *(
        case("DequantizeLinear", integers(0, 8, 2, 3, 8).astype(kind), SCALE, zero(kind, 3), name=kind)
        for kind in ("uint8", "int8", "int16", "uint16", "uint4", "int4")
    ),
    case("DequantizeLinear", integers(-99, 99, 2, 3, dtype=np.int32), SCALE, name="int32"),
    case("DequantizeLinear", integers(0, 9, 2, 3, 8, dtype=np.uint8), SCALES, name="axis 1", axis=1, dims=ROWS),
    case("DequantizeLinear", integers(0, 9, 2, 8, 3, dtype=np.int8), SCALES, zero("int8", 3, 2, 0), name="-1", axis=-1),
    case("DynamicQuantizeMatMul", A, B, ONE, name="plain", dims=ROWS, constants=(1, 2)),
    case(
        "DynamicQuantizeMatMul",
        A,
        B,
        EACH,
        zero("int8", *range(5)),
        BIAS,
        name="columns",
        dims=ROWS,
        constants=(1, 2, 3, 4),
    ),
    case(
        "DynamicQuantizeMatMul", A, RIGHT, ONE, zero("uint8", 7), BIAS, name="uint8", dims=ROWS, constants=(1, 2, 3, 4)
    ),
    case("DynamicQuantizeMatMul", A, B, ONE, name="run-time"),
    case("MatMulIntegerToFloat", U8, RIGHT, ONE, ONE, name="plain", dims={0: "S _"}),
    case("MatMulIntegerToFloat", U8, B, ONE, EACH, zero("uint8", 7), zero("int8", *range(5)), BIAS, name="columns"),
    case("MatMulIntegerToFloat", S8, B, ONE, ONE, zero("int8", 7), zero("int8", -3), name="int8", dims={0: "S _"}),
    case("MatMulIntegerToFloat", U8[None], RIGHT, np.float32([0.1]), ONE, zero("uint8", 7), name="one scale"),
    case("MatMulIntegerToFloat", U8, B, *HALVES[:2], zero("uint8", 7), None, HALVES[2], name="float16", **HALF),
    case("QGemm", U8, ONE, zero("uint8", 7), RIGHT, ONE, zero("uint8", 9), name="floats", dims={0: "S _"}),
    case("QGemm", U8, ONE, zero("uint8", 7), B, EACH, zero("int8", *range(5)), C, name="columns", alpha=0.5),
    case("QGemm", S8, ONE, zero("int8", 7), B, ONE, zero("int8", 0), C, FIVE, zero("int8", 3), name="codes"),
    case("QGemm", U8, ONE, zero("uint8", 7), B, ONE, zero("int8", 0), None, FIVE, zero("uint8", 3), name="no C"),
    case("QGemm", U8, ONE, zero("uint8", 7), B, EACH, zero("int8", *range(5)), C, FIVE, name="a scale of the result"),
    case("QGemm", U8.T, ONE, zero("uint8", 7), RIGHT.T, ONE, zero("uint8", 9), name="transposed", transA=1, transB=1),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_floats_are_no_codes() -> None:
    with pytest.raises(CompileError, match="element type"):
        compiler.compile(Case("MatMulIntegerToFloat", [A[0], B, ONE, ONE]).model())
