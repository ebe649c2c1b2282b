"""Operators that move elements."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import IMAGE, IMAGES, ONE, TWO, integers, rows

STACKED = integers(-1)

MOVED = [
    *rows("float uint8", TWO, "y = Concat<axis = OP>(x, z)", "0 1", n=6000),
    *rows("float uint8", ONE, "y, z = Split<axis = OP, num_outputs = 2>(x)", "0 1", n=6000),
    *rows("float uint8", ONE, "y = Transpose(x)", n=6000),
    *rows("float", ONE, "y = OP(x)", "Identity Flatten Trilu EyeLike Shape Size"),
    *rows("float", "T[n, m] x, int64[1] k", "y = OP(x, k)", "Unsqueeze Reshape", k=STACKED),
    *rows("float", "T[n, m, 1] x, int64[1] k", "y = Squeeze(x, k)", k=STACKED),
    *rows("float string", "T[1, m] x, int64[2] k", "y = OP(x, k)", "Expand Tile", k=integers(150, 1), m=1000),
    *rows("float", "T[1, m] x, int64[2] k", "y = OP(x, k)", "Expand Tile", k=integers(3000, 1), m=1000),
    *rows(
        "float uint8",
        "T[n, m] x, int64[1] a, int64[1] b, int64[1] c",
        "y = Slice(x, a, b, c)",
        n=6000,
        a=integers(3),
        b=integers(1500),
        c=integers(1),
    ),
    *rows(
        "float uint8",
        "T[n, m] x, int64[4] p",
        'y = Pad<mode = "OP">(x, p)',
        "constant edge reflect wrap",
        n=6000,
        p=integers(9, 99, -9, 99),
    ),
    *rows("float", "T[n, m] x, int64[2] p", "y = CenterCropPad(x, p)", p=integers(1000, 3000)),
    *rows(
        "float float16",
        "T[1, 1024, k] x, int64[2] a, int64[2] b",
        "y = Col2Im<strides = [4, 4]>(x, a, b)",
        k=4096,
        a=integers(256, 256),
        b=integers(4, 4),
    ),
    *rows("float", IMAGES, "y = OP<blocksize = 2>(x)", "DepthToSpace SpaceToDepth", **IMAGE),
    *rows("float string", "T[n, m] x, int64[m] k", "y = ReverseSequence(x, k)", n=20, m=20_000),
    *rows("float", "T[n, m] x, bool[n] c", "y = Compress<axis = 0>(x, c)"),
    *rows("float", "T[k] x, bool[k] c", "y = Compress(x, c)", k=4_000_000),
    *rows("float uint8", ONE, "y = NonZero(x)"),
    *rows("float int64 string", ONE, "y, a, b, c = Unique(x)", n=200, m=1000),
    *rows("float", ONE, "y, a, b, c = Unique<axis = 0>(x)"),
    *rows("int64", "int64[2] k", "y = ConstantOfShape(k)", k=integers(1536, 1536)),
    *rows("int64 float", "T[k] x, int64 a, float[2] b", "y = OneHot(x, a, b)", k=300_000, a=np.int64(20)),
    *rows("float", "T[k] x, int64 a, string[2] b", "y = OneHot(x, a, b)", k=20_000, a=np.int64(9)),
    *rows("int64", "T a, T b, T c", "y = Range(a, b, c)", a=np.int64(0), b=np.int64(2_000_000), c=np.int64(1)),
    *rows("float", "", "y = Constant<value = float[2] {1, 2}>()"),
    *rows("int32 int64", "float[k] x, T[n, m] z", "y = Gather(x, z)", k=9),
    *rows("string", "string[k] x, int64[n, m] z", "y = Gather(x, z)", k=9, n=200, m=1000),
    *rows("int32 int64", "float[n, m] x, T[n, m] z", "y = GatherElements(x, z)"),
    *rows("float", "T[n, m] x, int64[k, 2] z", "y = GatherND(x, z)", k=500_000),
    *rows("int32 int64", "float[n, m] x, T[n, m] z, float[n, m] u", "y = ScatterElements(x, z, u)"),
    *rows("float float16", "T[n, m] x, int64[n, m] z, T[n, m] u", 'y = ScatterElements<reduction = "add">(x, z, u)'),
    *rows("float", "T[n, m] x, int64[n, m] z, T[n, m] u", "y = Scatter(x, z, u)", opset=10),
    *rows("float", "T[n, m] x, int64[k, 2] z, T[k] u", "y = ScatterND(x, z, u)", k=500_000),
    *rows("float", "T[k, n, m] x, T[k, 8, m] u, int64[k] z", "y = TensorScatter<axis = 1>(x, u, z)", k=2),
    *rows("float", "T[n, m] x, int64[k] z", "y = ai.onnx.ml.ArrayFeatureExtractor(x, z)", k=1500),
]
