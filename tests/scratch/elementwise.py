"""Operators on elements, alone or along axes."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import KEEP, KEPT, ONE, TWO, integers, rows

UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish
Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
com.microsoft.FastGelu com.microsoft.Gelu com.microsoft.QuickGelu
"""

ELEMENTWISE = [
    *rows("float float16", ONE, "y = OP(x)", UNARY),
    *rows("double int64", ONE, "y = OP(x)", "Abs Neg Sign Relu"),
    *rows("float float16 double", ONE, "y = OP(x)", "IsInf IsNaN"),
    *rows("bool", ONE, "y = Not(x)", n=6000),
    *rows("uint16", ONE, "y = BitwiseNot(x)", n=4096),
    *rows("float", ONE, "y = ai.onnx.ml.Binarizer(x)"),
    *rows("float float16 int64", TWO, "y = OP(x, z)", "Add Sub Mul Div Max Min Pow Mod<fmod=1> Equal Less"),
    *rows("float float16", TWO, "y = OP(x, z)", "Mean Sum PRelu SwiGLU"),
    *rows("float float16", "T[n, m] x, T[m] z", "y = com.microsoft.BiasGelu(x, z)"),
    *rows("float float16 int32", "T[n, 1] x, T[1, m] z", "y = OP(x, z)", "Add Max Pow Greater"),
    *rows("float", TWO, "y = OP(x, z)", "LessOrEqual GreaterOrEqual"),
    *rows("bool", TWO, "y = OP(x, z)", "And Or Xor Equal", n=6000),
    *rows("int32", TWO, "y = OP(x, z)", "BitwiseAnd BitwiseOr BitwiseXor Mod"),
    *rows("uint32", TWO, 'y = BitShift<direction = "LEFT">(x, z)'),
    *rows("float float16 uint8", "T[n, m] x, T a, T b", "y = Clip(x, a, b)", n=6000),
    *rows("float float16", ONE, "y = Dropout(x)"),
    *rows("float uint8", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=6000),
    *rows("string", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=200, m=1000),
    *rows("float", ONE, "y = BitCast<to = 6>(x)"),
    *rows("uint8", ONE, "y = BitCast<to = 3>(x)", n=6000),
    *rows("float double int8", ONE, "y = Cast<to = OP>(x)", "1 2 6 9 10 11 16 17 22", n=6000, m=1000),
    *rows("float int64 bool string", ONE, "y = Cast<to = 8>(x)", n=200, m=1000),
    *rows("string", ONE, "y = Cast<to = 1>(x)", n=200, m=1000),
    *rows("float", "float[n, m] x, double[1] z", "y = CastLike(x, z)"),
    *rows("float float16", ONE, "y = OP(x)", "Softmax LogSoftmax Hardmax Softmax<axis=0>"),
    *rows("float float16", ONE, "y = OP(x)", "Bernoulli RandomNormalLike RandomUniformLike"),
]

REDUCTIONS = """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare"""

REDUCED = [
    *rows("float float16", "T[n, m] x, int64[1] k", "y = OP(x, k)", REDUCTIONS, k=integers(1)),
    *rows(
        "float float16 int32",
        "T[n, m] x, int64[1] k",
        "y = OP(x, k)",
        REDUCTIONS,
        opset=18,
        k=integers(0),
        n=2,
        m=1_000_000,
    ),
    *rows(
        "uint8 bool", "T[n, m] x, int64[1] k", "y = OP(x, k)", "ReduceMax ReduceMin", k=integers(0), n=2, m=6_000_000
    ),
    *rows("int32", f"T[k] x, {KEEP}", f"y = ReduceLogSumExp(x) {KEPT}", opset=18, k=8 << 20),
    *rows("float uint8", ONE, "y = OP<axis = 0>(x)", "ArgMax ArgMin", n=3, m=1_000_000),
    *rows(
        "float int64", "T[n, m] x, int64[1] k", "y, z = TopK<axis = OP>(x, k)", "0 1", k=integers(200), n=200, m=4000
    ),
    *rows("float double int32", "T[n, m] x, int64 k", "y = OP(x, k)", "CumSum CumProd", k=np.int64(0)),
]
