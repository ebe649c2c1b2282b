from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Array, Case, case, check, integers
from tests.contrib.test_qlinear import EXACT, TYPES, codes, one_name, scale

CONV = "QLinearConv"
IMAGES = {0: "N _ H W"}
LAST = {0: "N H W _"}


def images(kind: type, *, last: bool = False) -> Array:
    found = codes(kind, 2, 4, 7, 6)
    return found.transpose(0, 2, 3, 1).copy() if last else found


def convolution(
    name: str, *, kind: type = np.uint8, last: bool = False, group: int = 1, bias: bool = True, **more: Any
) -> Any:
    weights = codes(np.int8, 6, 4 // group, 3, 3)
    scales = np.abs(codes(np.int8, 6)).astype(np.float32) / 1000 + np.float32(0.01)
    operands = [images(kind, last=last), scale(0.1), np.array(7, kind), weights, scales, np.zeros(6, np.int8)]
    operands += [scale(3.3), np.array(5, kind), *([integers(-500, 500, 6, dtype=np.int32)] if bias else [])]
    options = {"group": group, **({"channels_last": 1} if last else {}), **more}
    constants = tuple(range(1, len(operands)))
    return case(
        CONV,
        *operands,
        name=f"{name} {one_name(kind)}",
        dims=LAST if last else IMAGES,
        constants=constants,
        **EXACT,
        **options,
    )


def pool(
    op_type: str, kind: type, x_scale: float, y_scale: float, name: str, *, last: bool = False, **options: Any
) -> Any:
    zeros = np.array(7, kind), np.array(5, kind)
    operands = (images(kind, last=last), scale(x_scale), zeros[0], scale(y_scale), zeros[1])
    options |= {"channels_last": 1} if last else {}
    title = f"{name} {one_name(kind)} {x_scale} {'last' if last else ''}"
    return case(
        op_type, *operands, name=title, dims=LAST if last else IMAGES, constants=(1, 2, 3, 4), **EXACT, **options
    )


AVERAGE, MEAN, LARGEST = "QLinearAveragePool", "QLinearGlobalAveragePool", "NhwcMaxPool"
WINDOWS = {
    "plain": {"kernel_shape": [2, 3]},
    "strides": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "pads": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "same": {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
}

CASES = [
    *(convolution("plain", kind=kind, last=last) for kind in TYPES for last in (False, True)),
    convolution("groups", last=True, group=2, strides=[2, 1], dilations=[1, 2]),
    convolution("pads", last=True, pads=[1, 0, 2, 1], kernel_shape=[3, 3], bias=False),
    convolution("same", last=True, auto_pad="SAME_UPPER"),
    *(
        pool(AVERAGE, kind, *scales, name, last=last, **options)
        for kind in TYPES
        for scales in ((0.25, 0.5), (0.1, 0.07))
        for last in (False, True)
        for name, options in WINDOWS.items()
    ),
    pool(AVERAGE, np.uint8, 0.25, 0.5, "padded", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    pool(AVERAGE, np.uint8, 0.25, 0.5, "ceil", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    case(
        AVERAGE,
        codes(np.uint8, 1, 2, 9),
        scale(0.1),
        np.array(7, np.uint8),
        scale(0.1),
        np.array(5, np.uint8),
        name="a signal",
        kernel_shape=[2],
        **EXACT,
    ),
    *(
        pool(MEAN, kind, *each, "", last=last)
        for kind in TYPES
        for each in ((0.25, 0.5), (0.1, 0.07))
        for last in (False, True)
    ),
    *(
        case(LARGEST, images(kind, last=True), name=f"{name} {one_name(kind)}", dims=LAST, **EXACT, **options)
        for kind in TYPES
        for name, options in WINDOWS.items()
    ),
    case(LARGEST, images(np.uint8, last=True), name="dilations", kernel_shape=[2, 2], dilations=[2, 1], **EXACT),
    case(LARGEST, images(np.uint8, last=True), name="ceil", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, **EXACT),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_floats_are_no_codes() -> None:
    given = Case(LARGEST, [np.zeros((1, 4, 4, 2), np.float32)], {"kernel_shape": [2, 2]})
    with pytest.raises(CompileError, match="NhwcMaxPool's input x has the element type float"):
        compiler.compile(given.model())
