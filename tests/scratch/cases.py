"""Runs every operator on shapes for which a kernel could need far more memory than its inputs and outputs.

The cases are hand-written models, with and without optimization, and all rows of `ROWS` with empty tensors.

`python -m tests.scratch.cases BOUND [DEVICE]`: `BOUND` is `max_memory` in bytes, 0 for none. With a device, the
hand-written models run there without optimization, and the rows do not run. The process may take `MORE_MEMORY` more
than at its start. A kernel that needs more memory, or more than `SECONDS`, ends the process. Each case prints its name,
and `result` or the error.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import onnx.parser

import compiler
from compiler import Options
from tests.fuzz_ops import limit_memory
from tests.scratch.row import Feeds, Row
from tests.scratch.table import ROWS

REFUSED, SECONDS = "refused", 300
NEWEST = '<ir_version: 12, opset_import: ["" : 28, "candle.plan" : 1]> agraph '

ONE = np.ones((1, 1, 1, 1), np.float32)
LONG = np.ones((1, 1, 1_000_000, 1), np.float32)
WIDE = "(float[1, 1, 1000000, 1] x, int64[4] s) => (float[a, b, c, d] y)"
TURNED = np.array([1, 1, 1, 1_000_000])
CODES = "float one, uint8 nil"
CODE = {"one": np.float32(1), "nil": np.uint8(0)}
FAR = "dilations = [30000, 30000], pads = [30000, 30000, 0, 0]"
LESS_FAR = FAR.replace("30000", "7000")

# The operator and the case, the graph, and its inputs.
CASES: dict[str, tuple[str, Feeds]] = {
    "Resize, linear": (f'{WIDE} {{ y = Resize<mode = "linear">(x, , , s) }}', {"x": LONG, "s": TURNED}),
    "Resize, cubic": (f'{WIDE} {{ y = Resize<mode = "cubic">(x, , , s) }}', {"x": LONG, "s": TURNED}),
    "Resize, antialias": (
        f'{WIDE} {{ y = Resize<mode = "linear", antialias = 1>(x, , , s) }}',
        {"x": LONG, "s": TURNED},
    ),
    "Resize, nearest": (f'{WIDE} {{ y = Resize<mode = "nearest">(x, , , s) }}', {"x": LONG, "s": TURNED}),
    "Conv, far taps": (
        f"(float[1, 1, 1, 1] x, float[1, 1, 2, 2] w) => (float[a, b, c, d] y) {{ y = Conv<{FAR}>(x, w) }}",
        {"x": ONE, "w": np.ones((1, 1, 2, 2), np.float32)},
    ),
    "Conv, far taps of many channels": (
        f"(float[1, 16, 1, 1] x, float[16, 16, 2, 2] w) => (float[a, b, c, d] y) {{ y = Conv<{LESS_FAR}>(x, w) }}",
        {"x": np.ones((1, 16, 1, 1), np.float32), "w": np.ones((16, 16, 2, 2), np.float32)},
    ),
    "Conv, far taps of a channel a group": (
        "(float[1, 16, 1, 1] x, float[16, 1, 2, 2] w) => (float[a, b, c, d] y)"
        f" {{ y = Conv<group = 16, {LESS_FAR}>(x, w) }}",
        {"x": np.ones((1, 16, 1, 1), np.float32), "w": np.ones((16, 1, 2, 2), np.float32)},
    ),
    "Conv and Relu, far taps": (
        f"(float[1, 1, 1, 1] x) => (float[a, b, c, d] y) <float[1, 1, 2, 2] w = {{1, 1, 1, 1}}>"
        f" {{ z = Conv<{FAR}>(x, w) y = Relu(z) }}",
        {"x": ONE},
    ),
    "Conv and Conv, far taps of a channel a group": (
        "(float[1, 16, 1, 1] x) => (float[a, b, c, d] y) <int64[4] s = {16, 1, 2, 2}, int64[4] t = {8, 16, 1, 1}>"
        " { v = ConstantOfShape<value = float[1] {1}>(s) w = ConstantOfShape<value = float[1] {1}>(t)"
        f" z = Conv<group = 16, {LESS_FAR}>(x, v) y = Conv(z, w) }}",
        {"x": np.ones((1, 16, 1, 1), np.float32)},
    ),
    "QLinearConv of packed weights, far taps": (
        "(uint8[1, 1, 1, 16] x) => (uint8[a, b, c, d] y)"
        " <int64[4] s = {16, 16, 2, 2}, float one = {1}, uint8 nil = {0}>"
        " { w = ConstantOfShape<value = uint8[1] {1}>(s)"
        f" y = candle.plan.QLinearConv<{LESS_FAR}, low = 0, high = 255>(x, w, one, nil, nil, nil) }}",
        {"x": np.ones((1, 1, 1, 16), np.uint8)},
    ),
    "QLinearBinary of tall and wide codes": (
        "(uint8[n, 1] x, float one, uint8 nil) => (uint8[a, b] y)"
        ' { z = Transpose(x) y = candle.plan.QLinearBinary<function = "Add", low = 0, high = 255>'
        "(x, z, one, nil, one, nil, one, nil) }",
        {"x": np.ones((20_000, 1), np.uint8), **CODE},
    ),
    "QLinearGlobalAveragePool of many channels": (
        "(uint8[1, 1, 1, n] x, float one, uint8 nil) => (uint8[a, b, c, d] y)"
        " { y = candle.plan.QLinearGlobalAveragePool(x, one, nil, nil) }",
        {"x": np.ones((1, 1, 1, 60_000_000), np.uint8), **CODE},
    ),
    "QuantizedMatMul of one deep row": (
        "(float[1, 65536] x, int8[n, 65536] w, float[n] a) => (float[b, c] y)"
        " { y = candle.plan.QuantizedMatMul(x, w, a) }",
        {"x": np.ones((1, 65536), np.float32), "w": np.ones((200, 65536), np.int8), "a": np.ones(200, np.float32)},
    ),
    "MatMulNBits of weights of 2 bits": (
        "(float[1, 65536] x, uint8[1024, 2048, 8] w, float[1024, 2048] a) => (float[b, c] y)"
        " { y = candle.plan.MatMulNBits<K = 65536, N = 1024, bits = 2, block_size = 32>(x, w, a) }",
        {
            "x": np.ones((1, 65536), np.float32),
            "w": np.ones((1024, 2048, 8), np.uint8),
            "a": np.ones((1024, 2048), np.float32),
        },
    ),
    "ConvTranspose, cut": (
        "(float[1, 1, 2, 2] x, float[1, 1, 3, 3] w) => (float[a, b, c, d] y)"
        " { y = ConvTranspose<strides = [20000, 20000], pads = [10000, 10000, 10000, 10000]>(x, w) }",
        {"x": np.ones((1, 1, 2, 2), np.float32), "w": np.ones((1, 1, 3, 3), np.float32)},
    ),
    "ConvInteger, far taps": (
        f"(uint8[1, 1, 1, 1] x, uint8[1, 1, 2, 2] w) => (int32[a, b, c, d] y) {{ y = ConvInteger<{FAR}>(x, w) }}",
        {"x": ONE.astype(np.uint8), "w": np.ones((1, 1, 2, 2), np.uint8)},
    ),
    "QLinearConv, far taps": (
        f"(uint8[1, 1, 1, 1] x, uint8[1, 1, 2, 2] w, {CODES}) => (uint8[a, b, c, d] y)"
        f" {{ y = QLinearConv<{FAR}>(x, one, nil, w, one, nil, one, nil) }}",
        {"x": ONE.astype(np.uint8), "w": np.ones((1, 1, 2, 2), np.uint8), **CODE},
    ),
    "MaxPool, far windows": (
        "(float[1, 1, 4, 4] x) => (float[a, b, c, d] y)"
        " { y = MaxPool<kernel_shape = [2, 2], strides = [1099511627776, 1099511627776]>(x) }",
        {"x": np.ones((1, 1, 4, 4), np.float32)},
    ),
    "MaxPool, far windows and places": (
        "(float[1, 1, 4, 4] x) => (float[a, b, c, d] y, int64[a, b, c, d] i)"
        " { y, i = MaxPool<kernel_shape = [2, 2], strides = [1099511627776, 1099511627776]>(x) }",
        {"x": np.ones((1, 1, 4, 4), np.float32)},
    ),
    "MaxPool, far taps": (
        "(float[1, 1, 1, 1] x) => (float[a, b, c, d] y) { y = MaxPool<kernel_shape = [2, 2],"
        " dilations = [1, 268435455], pads = [1, 0, 0, 268435455]>(x) }",
        {"x": ONE},
    ),
    "AveragePool, wide padding": (
        "(float[1, 1, 1, 1] x) => (float[a, b, c, d] y) { y = AveragePool<kernel_shape = [1, 268435456],"
        " pads = [0, 268435455, 0, 0]>(x) }",
        {"x": ONE},
    ),
    "LpPool, far windows": (
        "(float[1, 1, 4, 4] x) => (float[a, b, c, d] y)"
        " { y = LpPool<kernel_shape = [2, 2], strides = [1099511627776, 1099511627776]>(x) }",
        {"x": np.ones((1, 1, 4, 4), np.float32)},
    ),
    "Einsum, an outer product between": (
        '(float[n] x) => (float[a] y) { y = Einsum<equation = "i,j,i,j->i">(x, x, x, x) }',
        {"x": np.ones(60_000, np.float32)},
    ),
    "Pad, cut again": (
        '(float[4] x, int64[2] p) => (float[n] y) { y = Pad<mode = "edge">(x, p) }',
        {"x": np.ones(4, np.float32), "p": np.array([2**40, -(2**40)])},
    ),
    "RoiAlign, many samples": (
        "(float[1, 1, 4, 4] x, float[1, 4] r, int64[1] b) => (float[a, b, c, d] y)"
        " { y = RoiAlign<sampling_ratio = 1000000>(x, r, b) }",
        {"x": np.ones((1, 1, 4, 4), np.float32), "r": np.float32([[0, 0, 3, 3]]), "b": np.array([0])},
    ),
    "StringSplit, one long": (
        '(string[n] x) => (string[n, m] y, int64[n] c) { y, c = StringSplit<delimiter = ",">(x) }',
        {"x": np.array(["a" + ",a" * 200_000, *["a"] * 100_000], object)},
    ),
    "LSTM, many steps of nothing": (
        "(float[t, b, 1] x, float[1, 256, 1] w, float[1, 256, 64] r) => (float[p, q, s, u] y)"
        " { y = LSTM<hidden_size = 64>(x, w, r) }",
        {
            "x": np.zeros((2**40, 0, 1), np.float32),
            "w": np.ones((1, 256, 1), np.float32),
            "r": np.ones((1, 256, 64), np.float32),
        },
    ),
    "Attention, many keys": (
        "(float[1, 1, a, 1] q, float[1, 1, b, 1] k) => (float[c, d, e, f] y) { y = Attention(q, k, k) }",
        {"q": np.ones((1, 1, 20_000, 1), np.float32), "k": np.ones((1, 1, 20_000, 1), np.float32)},
    ),
    "TopK, all of long columns": (
        "(float[n, m] x, int64[1] k) => (float[a, b] y, int64[a, b] i) { y, i = TopK<axis = 0>(x, k) }",
        {"x": np.ones((100_000, 16), np.float32), "k": np.array([100_000])},
    ),
}

KEYS = np.ones((1, 1, 1_000, 1), np.float32)
SMALLER: dict[str, Feeds] = {
    "Attention, many keys": {"q": KEYS, "k": KEYS},
    "TopK, all of long columns": {"x": np.ones((10_000, 16), np.float32), "k": np.array([10_000])},
}
"""Inputs on a device, for cases that take minutes in the emulator."""


class Case(NamedTuple):
    """A function that compiles a model, and inputs of the plan."""

    name: str
    compiled: Callable[[], compiler.Plan]
    feeds: Feeds
    may_be_refused: bool = False
    """Whether the compiler may refuse the model, because it knows the sizes of constants."""
    device: str = "cpu"

    def outcome(self) -> str:
        """`result`, or the error; `REFUSED` if the compiler refuses a model that it must accept."""
        try:
            compiler.load(self.compiled(), threads=2, device=self.device).run(self.feeds)
        except compiler.CompileError as error:
            return str(error) if self.may_be_refused else REFUSED
        except (compiler.InputError, compiler.PlanError, compiler.RunError) as error:
            return str(error)  # a PlanError if the packed constants do not fit the memory
        return "result"


def every_case(bound: int | None) -> Iterator[Case]:
    """The hand-written cases, and those of the rows."""
    for name, (graph, feeds) in CASES.items():
        for suffix, optimize in (("", False), (", optimized", True)):
            yield Case(name + suffix, functools.partial(plan_of, graph, bound, optimize), feeds)
    for row in ROWS:
        yield from _cases_of(row, bound)


def cases_on(device: str, bound: int | None) -> Iterator[Case]:
    """The hand-written cases on a device."""
    for name, (graph, feeds) in CASES.items():
        yield Case(name, functools.partial(plan_of, graph, bound), SMALLER.get(name, feeds), device=device)


def _cases_of(row: Row, bound: int | None) -> Iterator[Case]:
    """The cases of a row. Without constants, all sizes share a plan."""
    compiled = functools.cache(lambda: row.plan({}, max_memory=bound)[0])
    for sizes, feeds in row.empty_feeds():
        name = f"{row.nodes} of {row.inputs}, {sizes}"
        if not row.constants:
            yield Case(name, compiled, feeds)
            continue
        others = {each: array for each, array in feeds.items() if each not in row.constants}
        with_constants = functools.partial(lambda given: row.plan(given, max_memory=bound)[0], feeds)
        yield Case(f"{name}, constants {' '.join(row.constants)}", with_constants, others, may_be_refused=True)


def plan_of(graph: str, bound: int | None, optimize: bool = False) -> compiler.Plan:
    """The plan of a hand-written model."""
    return compiler.compile(onnx.parser.parse_model(NEWEST + graph), Options(max_memory=bound, optimize=optimize))


def main() -> None:
    """Every case, its name written first."""
    bound, device = int(sys.argv[1]) or None, sys.argv[2:]
    cases = list(cases_on(device[0], bound) if device else every_case(bound))
    limit_memory()
    for case in cases:
        print(json.dumps(case.name), flush=True)
        signal.alarm(SECONDS)
        print(json.dumps(case.outcome()), flush=True)


if __name__ == "__main__":
    main()
