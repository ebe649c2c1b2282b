"""Operators on images, and normalizations."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import IMAGE, IMAGES, ONE, integers, rows

CHANNELS = "T[c] a, T[c] b"

NORMALIZED = [
    *rows("float float16", f"{IMAGES}, {CHANNELS}, T[c] d, T[c] e", "y = BatchNormalization(x, a, b, d, e)", **IMAGE),
    *rows("float float16", f"{IMAGES}, {CHANNELS}", "y = GroupNormalization<num_groups = 4>(x, a, b)", **IMAGE),
    *rows("float float16", f"{IMAGES}, {CHANNELS}", "y = InstanceNormalization(x, a, b)", **IMAGE),
    *rows("float float16", IMAGES, "y = OP(x)", "LRN<size=5> LpNormalization", **IMAGE),
    *rows("float", IMAGES, "y = MeanVarianceNormalization(x)", **IMAGE),
    *rows("float float16", "T[n, m] x, T[m] a, T[m] b", "y, c, d = LayerNormalization(x, a, b)"),
    *rows("float", "T[n, m] x, T[n, m] a", "y, b, c = LayerNormalization<axis = 0>(x, a)"),
    *rows("float float16", "T[n, m] x, T[m] a", "y = RMSNormalization(x, a)"),
    *rows("float", "float16[n, m] x, float[m] a", "y = RMSNormalization(x, a)"),
    *rows("int64", "float[n, m] x, T[n] k", 'y = OP<reduction = "none">(x, k)', "NegativeLogLikelihoodLoss"),
    *rows("int64", "float[n, m] x, T[n] k", 'y = OP<reduction = "none">(x, k)', "SoftmaxCrossEntropyLoss"),
    *rows("uint8", "float[n, m] x, float a, T b", "y = QuantizeLinear(x, a, b)"),
    *rows("int8", "float[n, m] x, float[m] a, T[m] b", "y = QuantizeLinear<axis = 1>(x, a, b)"),
    *rows("float", "float[n, m] x, float[n, m] a", "y = QuantizeLinear<block_size = 1>(x, a)"),
    *rows("uint8 int32", "T[n, m] x, float a", "y = DequantizeLinear(x, a)"),
    *rows("uint8 int8", "T[n, m] x, float[n, m] a, T[n, m] b", "y = DequantizeLinear<block_size = 1>(x, a, b)"),
    *rows("float", ONE, "y, a, b = DynamicQuantizeLinear(x)"),
]

BETWEEN = integers(1, 16, 300, 500)

SAMPLED = [
    *rows("float float16", IMAGES, "y = OP(x)", "GlobalAveragePool GlobalLpPool GlobalMaxPool", **IMAGE),
    *rows("float float16", IMAGES, "y = OP<kernel_shape = [3, 3]>(x)", "AveragePool LpPool MaxPool", **IMAGE),
    *rows("float uint8", IMAGES, "y, i = MaxPool<kernel_shape = [2, 2]>(x)", **IMAGE),
    *rows(
        "float float16",
        IMAGES,
        "p, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)"
        " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(p, i)",
        **IMAGE,
    ),
    *rows(
        "float float16 uint8 int16",
        f"{IMAGES}, int64[4] k",
        'y = Resize<mode = "OP">(x, , , k)',
        "linear cubic nearest",
        **IMAGE,
        k=BETWEEN,
    ),
    *rows(
        "uint8",
        f"{IMAGES}, int64[4] k",
        'y = Resize<mode = "linear">(x, , , k)',
        c=1,
        n=4096,
        m=4096,
        k=integers(1, 1, 64, 64),
    ),
    *rows(
        "float uint8",
        "T[n, m] x, int64[2] k",
        'y = Resize<mode = "nearest">(x, , , k)',
        n=8,
        m=8,
        k=integers(8, 900_000),
    ),
    *rows("float", f"{IMAGES}, float[4] k", "y = Upsample(x, k)", opset=9, **IMAGE, k=np.float32([1, 1, 2, 2])),
    *rows(
        "float",
        "T[1, 4, n, m] x, T[1, k, k, 2] g",
        'y = GridSample<mode = "OP">(x, g)',
        "linear nearest cubic",
        k=600,
        n=600,
        m=600,
    ),
    *rows("float", "T[2, 2, 3] x, int64[4] k", "y = AffineGrid(x, k)", k=integers(2, 1, 700, 700)),
    *rows(
        "float",
        f"{IMAGES}, T[k, 4] r, int64[k] b",
        "y = RoiAlign<output_height = 9>(x, r, b)",
        **IMAGE,
        k=2000,
        b=np.zeros(2000, np.int64),
    ),
    *rows(
        "float",
        f"{IMAGES}, T[k, 5] r",
        "y = MaxRoiPool<pooled_shape = [9, 9]>(x, r)",
        **IMAGE,
        k=400,
        r=np.tile(np.float32([0, 0, 0, 9, 9]), (400, 1)),
    ),
    *rows(
        "float",
        "T[1, n, 4] x, T[1, c, n] z, int64[1] k",
        "y = NonMaxSuppression(x, z, k)",
        c=2,
        n=300_000,
        k=integers(5),
    ),
]
