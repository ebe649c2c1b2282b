import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Case, case, check, normal

A, B = normal(2, 3, 4), normal(2, 4, 5)
LEFT, RIGHT, C = normal(3, 4), normal(4, 5), normal(5)
IMAGE, FILTER, OFFSET = normal(1, 4, 6, 7), normal(6, 4, 3, 3), normal(6)
OUT = normal(1, 6, 4, 5)
SWAPPED = (A.swapaxes(1, 2).copy(), B.swapaxes(1, 2).copy())
ACTIVATIONS = {
    "Elu": {"activation_alpha": 0.3},
    "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
    "LeakyRelu": {"activation_alpha": 0.3},
    "Relu": {},
    "Selu": {"activation_alpha": 0.3, "activation_gamma": 1.5},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"activation_alpha": 0.3},
}
PARAMETERS = {
    **{name: {} for name in ("Relu", "Tanh", "Sigmoid")},
    "LeakyRelu": {"activation_params": [0.2]},
    "Clip": {"activation_params": [-0.5, 0.5]},
    "HardSigmoid": {"activation_params": [0.3, 0.4]},
}
SIZES = {0: "B M _", 1: "B _ N"}

CASES = [
    case("FusedMatMul", A, B, name="plain", dims=SIZES),
    case("FusedMatMul", A, B, name="alpha", alpha=0.3, dims=SIZES),
    case("FusedMatMul", SWAPPED[0], B, name="transA", transA=1, alpha=2.0, dims={0: "B _ M", 1: "B _ N"}),
    case("FusedMatMul", A, SWAPPED[1], name="transB", transB=1, dims={0: "B M _", 1: "B N _"}),
    case("FusedMatMul", *SWAPPED, name="both", transA=1, transB=1),
    case("FusedMatMul", A.swapaxes(0, 1).copy(), B, name="transBatchA", transBatchA=1),
    case("FusedMatMul", A, B.swapaxes(0, 1).copy(), name="transBatchB", transBatchB=1),
    case(
        "FusedMatMul", normal(3, 2, 4, 6), normal(3, 2, 4, 6), name="four axes", transBatchA=1, transBatchB=1, transB=1
    ),
    case("FusedMatMul", normal(3, 2, 4, 6), normal(2, 4, 3, 5), name="transA and batch", transBatchA=1, transA=1),
    case("FusedMatMul", normal(4), RIGHT, name="vector", transA=1),
    case("FusedMatMul", A.astype(np.float64), B.astype(np.float64), name="float64", alpha=0.3),
    case("TransposeMatMul", SWAPPED[0], B, name="transA", transA=1, alpha=0.5),
    case("TransposeMatMul", A, SWAPPED[1], name="transB", transB=1),
    *(case("FusedGemm", LEFT, RIGHT, C, name=kind, activation=kind, **given) for kind, given in ACTIVATIONS.items()),
    case("FusedGemm", LEFT.T.copy(), RIGHT.T.copy(), C, name="transposed", activation="Relu", transA=1, transB=1),
    case("FusedGemm", LEFT, RIGHT, None, name="without C", activation="Tanh", alpha=0.3, dims={0: "M _"}),
    case("FusedGemm", LEFT, RIGHT, C, name="beta", activation="Tanh", beta=0.3, alpha=2.0),
    case("FusedConv", IMAGE, FILTER, OFFSET, name="plain", dims={0: "N _ H W"}, constants=(1, 2)),
    *(
        case("FusedConv", IMAGE, FILTER, OFFSET, name=kind, activation=kind, constants=(1, 2), **given)
        for kind, given in PARAMETERS.items()
    ),
    case("FusedConv", IMAGE, FILTER, OFFSET, OUT, name="sum", activation="Relu"),
    case("FusedConv", IMAGE, FILTER, None, OUT, name="sum without bias", activation="Relu"),
    case("FusedConv", IMAGE, FILTER, OFFSET, name="sizes", kernel_shape=[3, 3], pads=[1, 0, 1, 2], strides=[2, 1]),
    case("FusedConv", IMAGE, FILTER[:, :2], OFFSET, name="groups", group=2, dilations=[2, 1], activation="Tanh"),
    case("FusedConv", IMAGE, FILTER, None, name="auto_pad", auto_pad="SAME_UPPER", activation="Sigmoid"),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Case("FusedGemm", [LEFT, RIGHT, C], {"activation": "Gelu"}), "no activation 'Gelu'"),
        (Case("FusedGemm", [LEFT, RIGHT, C]), "needs the attribute activation"),
        (Case("FusedGemm", [LEFT, RIGHT, C], {"activation": "Elu"}), "needs the attribute activation_alpha"),
        (Case("FusedConv", [IMAGE, FILTER], {"activation": "Elu"}), "no activation 'Elu'"),
        (Case("FusedConv", [IMAGE, FILTER], {"activation": "Clip"}), "needs 2 activation_params"),
        (Case("FusedMatMul", [A, B], {"transA": 2}), "transA is 0 or 1, not 2"),
    ],
)
def test_refusals(given: Case, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())
