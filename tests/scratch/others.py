"""Operators without a file in tests/lower: functions of ONNX, and operators that only the tests of ONNX check."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import ONE, integers, rows

OTHERS = [
    *rows("float", ONE, "y = BitCast<to = 6>(x)"),
    *rows("uint8", ONE, "y = BitCast<to = 3>(x)", n=6000),
    *rows("float double int8", ONE, "y = Cast<to = OP>(x)", "1 2 6 9 10 11 16 17 22", n=6000, m=1000),
    *rows("float int64 bool string", ONE, "y = Cast<to = 8>(x)", n=200, m=1000),
    *rows("string", ONE, "y = Cast<to = 1>(x)", n=200, m=1000),
    *rows("float", "float[n, m] x, double[1] z", "y = CastLike(x, z)"),
    *rows("int64", "float[n, m] x, T[n] k", 'y = OP<reduction = "none">(x, k)', "NegativeLogLikelihoodLoss"),
    *rows("int64", "float[n, m] x, T[n] k", 'y = OP<reduction = "none">(x, k)', "SoftmaxCrossEntropyLoss"),
    *rows("uint8", "float[n, m] x, float a, T b", "y = QuantizeLinear(x, a, b)"),
    *rows("int8", "float[n, m] x, float[m] a, T[m] b", "y = QuantizeLinear<axis = 1>(x, a, b)"),
    *rows("float", "float[n, m] x, float[n, m] a", "y = QuantizeLinear<block_size = 1>(x, a)"),
    *rows("uint8 int32", "T[n, m] x, float a", "y = DequantizeLinear(x, a)"),
    *rows("uint8 int8", "T[n, m] x, float[n, m] a, T[n, m] b", "y = DequantizeLinear<block_size = 1>(x, a, b)"),
    *rows("float", ONE, "y, a, b = DynamicQuantizeLinear(x)"),
    *rows("float", "T[2, 2, 3] x, int64[4] k", "y = AffineGrid(x, k)", k=integers(2, 1, 700, 700)),
    *rows(
        "float",
        "T[1, k, 256] x",
        'y, c = LinearAttention<q_num_heads = 4, kv_num_heads = 4, update_rule = "linear">(x, x, x)',
        k=512,
    ),
    *rows("float", "T[1, 64, m] x, T[64, 1, 4] w", "y, z = CausalConvWithState(x, w)", m=40_000),
    *rows("int64", "T k", "y = OP(k)", "BlackmanWindow HammingWindow HannWindow", k=np.int64(1_000_000)),
]
