from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, normal

OP = "CropAndResize"
X = normal(2, 3, 6, 7)
ROIS = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.8, 0.9], [-0.5, 0, 0.5, 1.5], [0.9, 0.8, 0.1, 0.2], [0.3, 0.3, 0.3, 0.3]])
IMAGES = np.int32([0, 1, 1, 0, 1])
SIZES = {0: "N _ H W", 1: "R _", 2: "R"}


def crop(name: str, *size: int, x: Array = X, rois: Array = ROIS, **options: Any) -> Any:
    return case(OP, x, rois, IMAGES, np.int32(size), name=name, dims=SIZES, constants=(3,), **options)


CASES = [
    crop("larger", 9, 11),
    crop("smaller", 3, 2),
    crop("nearest", 5, 8, mode="nearest"),
    crop("ties of nearest", 11, 13, mode="nearest", rois=np.float32([[0, 0, 1, 1]] * 5)),
    crop("the middle", 1, 1, extrapolation_value=-7.0),
    crop("the middle row", 1, 4, mode="bilinear", extrapolation_value=2.5),
    crop("float16", 4, 5, x=X.astype(np.float16), rois=ROIS.astype(np.float16), **HALF),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("options", "constants", "reason"),
    [
        ({"mode": "cubic"}, (3,), "no mode 'cubic'"),
        ({}, (), "a constant crop_size"),
        ({}, (1,), "a constant crop_size"),
    ],
)
def test_refusals(options: dict[str, str], constants: tuple[int, ...], reason: str) -> None:
    given = Case(OP, [X, ROIS, IMAGES, np.int32([2, 2])], options, constants=constants)
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())
