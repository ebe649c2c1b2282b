import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Case, case, check, integers, normal

X, IMAGE = normal(3, 4), normal(2, 3, 5, 6)
GRID = np.random.default_rng(0).uniform(-1.2, 1.2, (2, 4, 3, 2)).astype(np.float32)
PADS = np.array([1, 0, 2, 1])
MANY = np.float32([2, 1, 1, 3, 2, 2, 5])

CASES = [
    *(
        case("ExpandDims", X, np.array(axis, np.int32), name=f"axis {axis}", constants=(1,), dims={0: "M N"})
        for axis in (0, 1, 2, -1, -3)
    ),
    case("ExpandDims", integers(0, 9, 3), np.array(0, np.int32), name="int64", constants=(1,)),
    *(case("Trilu", X, np.array(k), name=f"k {k}", upper=upper) for k in (-1, 0, 2) for upper in (0, 1)),
    case("Trilu", IMAGE, name="plain", dims={0: "N C H W"}),
    case("Pad", X, PADS, name="plain", constants=(1,), dims={0: "M N"}),
    case("Pad", X, PADS[None], np.float32([2.5]), name="rows of pads", constants=(1, 2)),
    case("Pad", X, PADS, name="reflect", mode="reflect", constants=(1,)),
    case("Pad", X, PADS, name="edge", mode="edge"),
    case("Range", np.array(1, np.int64), np.array(9, np.int64), np.array(3, np.int64), name="int64"),
    case("Range", np.array(1, np.float32), np.array(3, np.float32), np.array(0.5, np.float32), name="float32"),
    case("Range", np.array(1, np.int32), np.array(4, np.int32), name="int32 without delta"),
    case("Range", np.int64([1]), np.int64([4]), name="vectors"),
    case("Range", np.array(5, np.float64), np.array(1, np.float64), np.array(-1.5, np.float64), name="float64"),
    case("Unique", MANY, name="plain", outputs=(True, True, True), dims={0: "N"}),
    *(
        case(
            "GridSample", IMAGE, GRID, name=f"{mode} {padding}", mode=mode, padding_mode=padding, align_corners=corners
        )
        for mode, padding, corners in [
            ("bilinear", "zeros", 0),
            ("nearest", "border", 1),
            ("bicubic", "reflection", 0),
            ("bilinear", "reflection", 1),
        ]
    ),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(CompileError, match="mode"):
        compiler.compile(Case("Pad", [X, PADS], {"mode": "wrapped"}).model())
