"""Convolutions."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import IMAGES, rows

CODED, CODES = "float one, uint8 nil", {"one": np.float32(1), "nil": np.uint8(4)}
TAPS = "T[o, c, 3, 3] w"
WIDE = {"c": 512, "n": 6, "m": 6, "o": 512}
DEEP = {"c": 16, "n": 400, "m": 400, "o": 16}
ALONE = {"c": 200_000, "n": 3, "m": 3}
CONVOLUTIONS = [
    *rows("float", f"{IMAGES}, T[c, 1, 3, 3] w", "y = Conv<group = 16>(x, w)", **DEEP),
    *rows("float", f"{IMAGES}, T[c, 1, 3, 3] w", "y = OP<group = 200000>(x, w)", "Conv ConvTranspose", **ALONE),
    *rows(
        "uint8",
        f"{IMAGES}, T[c, 1, 3, 3] w, {CODED}",
        "y = QLinearConv<group = 200000>(x, one, nil, w, one, nil, one, nil)",
        **ALONE,
        **CODES,
    ),
    *rows(
        "float",
        "T[1, 16, n, m] x, T[1, 18, n, m] d, T[16, 16, 3, 3] w",
        "y = DeformConv<pads = [1, 1, 1, 1]>(x, w, d)",
        n=200,
        m=200,
    ),
]
for sizes in (WIDE, DEEP):
    CONVOLUTIONS += [
        *rows(
            "float float16 double",
            f"{IMAGES}, {TAPS}",
            "y = OP(x, w)",
            "Conv Conv<strides=[2,2]> ConvTranspose",
            **sizes,
        ),
        *rows("float", f"{IMAGES}, {TAPS}", "y = Conv<dilations = [2, 2]>(x, w)", **sizes),
        *rows("float", f"{IMAGES}, {TAPS}", "y = ConvTranspose<strides = [2, 2]>(x, w)", **sizes),
        *rows("uint8", f"{IMAGES}, {TAPS}", "y = ConvInteger(x, w)", **sizes),
        *rows(
            "uint8",
            f"{IMAGES}, {TAPS}, {CODED}",
            "y = QLinearConv(x, one, nil, w, one, nil, one, nil)",
            **sizes,
            **CODES,
        ),
    ]
