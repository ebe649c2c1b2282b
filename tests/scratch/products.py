"""Products, attention and recurrent layers."""

from __future__ import annotations

from tests.scratch.convolutions import CODED, CODES
from tests.scratch.row import KEEP, KEPT, ONE, rows

PRODUCT = "T[n, k] x, T[k, m] z"
TALL, FLAT = {"n": 4, "k": 2048, "m": 2048}, {"n": 1024, "k": 2048, "m": 64}
HEADS = "T[1, 4, k, 64] x, T[1, 4, k, 64] z"
LAYER = "T[k, 4, h] x, T[1, a, h] w, T[1, a, h] r"

PRODUCTS = [
    *rows("float float16", ONE, 'y = Einsum<equation = "OP">(x)', "ij->ji ij->j ii->i"),
    *rows("float double", f"T[n, n] x, {KEEP}", f"y = Det(x) {KEPT}", n=1000),
    *rows(
        "float float16",
        f"{HEADS}, T[1, 4, k, 64] v",
        "y = OP(x, z, v)",
        "Attention ai.onnx.preview.FlexAttention",
        k=2000,
    ),
    *rows("float float16", f"{HEADS}, T[1, 4, 9, 64] v", "y, e, f, g = Attention(x, z, z, , v, v)", k=1500),
    *rows(
        "float",
        "T[1, k, 256] x",
        'y, c = LinearAttention<q_num_heads = 4, kv_num_heads = 4, update_rule = "linear">(x, x, x)',
        k=512,
    ),
    *rows(
        "float float16",
        "T[1, 8, k, 64] x, T[k, 32] a, T[k, 32] b, int64[1, k] z",
        "y = RotaryEmbedding(x, a, b, z)",
        k=8000,
    ),
    *rows("float", "T[1, 64, m] x, T[64, 1, 4] w", "y, z = CausalConvWithState(x, w)", m=40_000),
    *rows(
        "float float16 double",
        f"{LAYER}, int32[4] z",
        "y, c = LSTM<hidden_size = 700>(x, w, r, , z)",
        h=700,
        a=2800,
        k=9,
    ),
    *rows("float double", LAYER, "y, c = GRU<hidden_size = 700>(x, w, r)", h=700, a=2100, k=9),
    *rows("float", LAYER, "y, c = RNN<hidden_size = 1400>(x, w, r)", h=1400, a=1400, k=9),
]
for sizes in (TALL, FLAT):
    PRODUCTS += [
        *rows("float float16 double int32", PRODUCT, "y = MatMul(x, z)", **sizes),
        *rows("float float16", PRODUCT, "y = Gemm(x, z)", **sizes),
        *rows("float float16", PRODUCT, 'y = Einsum<equation = "ij,jk->ki">(x, z)', **sizes),
        *rows("uint8", PRODUCT, "y = MatMulInteger(x, z)", **sizes),
        *rows(
            "uint8", f"{PRODUCT}, {CODED}", "y = QLinearMatMul(x, one, nil, z, one, nil, one, nil)", **sizes, **CODES
        ),
    ]
