from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Array, Case, case, check, integers

EXACT = {"rtol": 0, "atol": 0}
TYPES = (np.uint8, np.int8)
SIZES = {0: "B S _"}


def scale(number: float) -> Array:
    return np.array(number, np.float32)


def codes(kind: type, *shape: int, seed: int = 0) -> Array:
    limits = np.iinfo(kind)
    return integers(int(limits.min), int(limits.max) + 1, *shape, dtype=kind, seed=seed)


def every(kind: type) -> Array:
    return np.arange(256, dtype=np.uint8).view(kind).reshape(4, 8, 8)


def one_name(kind: type) -> str:
    return np.dtype(kind).name


SCALES = ((0.5, 0.25, 1.0), (0.1, 0.2, 0.25), (0.25, 0.125, 0.5))
"""Scales of two operands and of the result. Those that are powers of two give many ties."""


def pair(
    op_type: str, kind: type, scales: tuple[float, float, float], *, b: Array | None = None, name: str = ""
) -> Any:
    a = codes(kind, 4, 8, 32)
    b = codes(kind, 4, 8, 32, seed=1) if b is None else b
    one, other, result = map(scale, scales)
    zeros = [np.array(number, kind) for number in (3, 7, 5)]
    dims = {0: "B S _", 3: "B S _"} if b.ndim == 3 else SIZES
    title = f"{one_name(kind)} {scales} {name}"
    operands = (a, one, zeros[0], b, other, zeros[1], result, zeros[2])
    return case(op_type, *operands, name=title, dims=dims, constants=(1, 2, 4, 5, 6, 7), **EXACT)


def every_pair(op_type: str, kind: type, scales: tuple[float, float, float]) -> Any:
    """A case with every pair of codes."""
    given: Case = pair(op_type, kind, scales).values[0]
    a, b = (np.ascontiguousarray(each) for each in np.meshgrid(every(kind), every(kind)))
    operands = [a, *given.inputs[1:3], b, *given.inputs[4:]]
    title = f"{op_type} every pair {one_name(kind)} {scales}"
    return pytest.param(Case(op_type, operands, constants=given.constants, **EXACT), id=title)


def function(op_type: str, kind: type, x_scale: float, y_scale: float, **options: Any) -> Any:
    zeros = np.array(7, kind), np.array(5, kind)
    operands = (every(kind), scale(x_scale), zeros[0], scale(y_scale), zeros[1])
    title = f"{one_name(kind)} {x_scale} {options}"
    return case(op_type, *operands, name=title, dims=SIZES, constants=(1, 2, 3, 4), **EXACT, **options)


def softmax(kind: type, x_scale: float, *, y_scale: float = 1 / 256, zero: int = 5, **attributes: int) -> Any:
    """A case of QLinearSoftmax, whose attribute `opset` is not the model's."""
    operands = [every(kind), scale(x_scale), np.array(7, kind), scale(y_scale), np.array(zero, kind)]
    given = Case("QLinearSoftmax", operands, dict(attributes), dims=SIZES, constants=(1, 2, 3, 4), **EXACT)
    return pytest.param(given, id=f"QLinearSoftmax {one_name(kind)} {x_scale} {y_scale} {zero} {attributes}")


CASES = [
    *(pair(op, kind, each) for op in ("QLinearAdd", "QLinearMul") for kind in TYPES for each in SCALES),
    *(pair(op, np.uint8, SCALES[0], b=codes(np.uint8, 32), name="a row") for op in ("QLinearAdd", "QLinearMul")),
    *(
        every_pair(op, kind, each)
        for op in ("QLinearAdd", "QLinearMul")
        for kind in TYPES
        for each in (*SCALES, (0.03, 0.05, 0.1))
    ),
    *(
        pair("QLinearAdd", kind, (0.03, 0.05, 0.1), b=codes(kind, *shape, seed=1), name=f"shape {shape}")
        for kind in TYPES
        for shape in ((), (8, 1), (8, 32))
    ),
    *(
        function("QLinearLeakyRelu", kind, *each, alpha=0.3)
        for kind in TYPES
        for each in ((0.25, 0.5), (0.1, 0.03), (0.5, 0.25))
    ),
    case(
        "QLinearLeakyRelu",
        every(np.uint8),
        *(np.float32([0.1]), None, np.float32([0.1]), np.uint8([100])),
        name="lists of one, and no zero point of X",
        **EXACT,
    ),
    *(function("QLinearSigmoid", kind, *each) for kind in TYPES for each in ((0.1, 1 / 256), (0.03, 0.041))),
    case(
        "QLinearSigmoid",
        every(np.int8),
        scale(0.1),
        None,
        scale(0.01),
        np.array(3, np.int8),
        name="no zero point of X",
        **EXACT,
    ),
    *(
        softmax(kind, x_scale, opset=opset, **axis)
        for kind in TYPES
        for x_scale in (0.03, 0.25)
        for opset, axis in ((13, {}), (13, {"axis": 1}), (12, {}), (12, {"axis": 2}))
    ),
    softmax(np.uint8, 0.1, y_scale=0.0055, opset=13),
    softmax(np.int8, 0.05, zero=-128, opset=13),
    *(
        case(
            "QLinearWhere",
            integers(0, 2, 8, 8, dtype=np.bool_),
            *(every(kind), scale(0.1), np.array(7, kind), codes(kind, 8), scale(0.07), np.array(9, kind)),
            *(scale(0.1), np.array(7, kind)),
            name=one_name(kind),
            dims={1: "B S _"},
            constants=(2, 3, 5, 6, 7, 8),
            **EXACT,
        )
        for kind in TYPES
    ),
    *(
        case(
            "QLinearConcat",
            *(scale(0.1), np.array(7, kind), every(kind), scale(0.1), np.array(7, kind)),
            *(every(kind), scale(0.07), np.array(9, kind)),
            name=f"{one_name(kind)} {axis}",
            axis=axis,
            dims={2: "B S _", 5: "B S _"},
            constants=(0, 1, 3, 4, 6, 7),
            **EXACT,
        )
        for kind in TYPES
        for axis in (1, -1)
    ),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_floats_are_no_codes() -> None:
    given = Case("QLinearSigmoid", [np.zeros(3, np.float32), scale(0.1), None, scale(0.1)])
    with pytest.raises(CompileError, match="QLinearSigmoid's input X has the element type float"):
        compiler.compile(given.model())


def test_an_operand_without_zero_point_is_refused() -> None:
    given = Case("QLinearConcat", [scale(0.1), np.array(7, np.uint8), every(np.uint8), scale(0.1)], {"axis": 1})
    with pytest.raises(CompileError, match="a scale and a zero point after each operand"):
        compiler.compile(given.model())
