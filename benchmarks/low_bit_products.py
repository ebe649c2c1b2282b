"""Times products with 4-bit weights whose left operand may be rounded to 8 bits, beside onnxruntime, on one thread.

    python benchmarks/low_bit_products.py [SIZE ...]

prints a table in Markdown for square weights of each size, 2048 and 4096 by default, in blocks of 32. A model has
several products in sequence. For few rows, the weights take 320 MB, so that the products read them from memory. The
ratios are medians, with the quartiles of repeated runs. The last columns have the relative errors `‖y − ŷ‖ / ‖y‖` of
one product, where y is in double precision. All sessions take turns in one process.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper

import compiler

BLOCK, CACHES = 32, 320 << 20
FEW, MANY = {1: 40, 4: 30}, {32: 30, 128: 16, 512: 8}
"""Rows of a product → the number of rounds: where reading the weights takes most of the time, and elsewhere."""
LAYERS = 4
"""The products in sequence for many rows, and with weights in float32."""
Array = np.ndarray


def weights(size: int, layers: int) -> list[Array]:
    """Codes `[layers, N, blocks, bytes]` and scales `[layers, N, blocks]`."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (layers, size, size // BLOCK, BLOCK // 2), np.uint8)
    return [codes, (random.random((layers, size, size // BLOCK), np.float32) + 0.5) / (4.6 * size**0.5)]


def low_bit(size: int, level: int, codes: Array, scales: Array) -> onnx.ModelProto:
    """Products in sequence, at an accuracy level."""
    attributes = f"K = {size}, N = {size}, bits = 4, block_size = {BLOCK}, accuracy_level = {level}"
    layers = "\n".join(
        f"{'y' if i == len(codes) - 1 else f'h{i + 1}'} = com.microsoft.MatMulNBits <{attributes}> (h{i}, w{i}, s{i})"
        for i in range(len(codes))
    )
    model: onnx.ModelProto = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> m (float[n, {size}] h0) => (float[n, {size}] y)'
        f" {{ {layers} }}"
    )
    for i, pair in enumerate(zip(codes, scales, strict=True)):
        model.graph.initializer.extend(
            numpy_helper.from_array(array, f"{name}{i}") for name, array in zip("ws", pair, strict=True)
        )
    return model


def dequantized(codes: Array, scales: Array) -> Array:
    """The weights `[N, K]` in double precision."""
    parts = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1, BLOCK)
    return np.asarray(((parts - 8.0) * scales[..., None]).reshape(len(codes), -1))


def plain(size: int, codes: Array, scales: Array) -> onnx.ModelProto:
    """The first products in sequence, with weights in float32."""
    layers = [f"{'y' if i == len(codes) - 1 else f'h{i + 1}'} = MatMul (h{i}, w{i})" for i in range(len(codes))]
    text = f"m (float[n, {size}] h0) => (float[n, {size}] y) {{ {' '.join(layers)} }}"
    model: onnx.ModelProto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    for i, pair in enumerate(zip(codes, scales, strict=True)):
        matrix = np.ascontiguousarray(dequantized(*pair).T.astype(np.float32))
        model.graph.initializer.append(numpy_helper.from_array(matrix, f"w{i}"))
    return model


Run = Callable[[Array], Array]


def ours(model: onnx.ModelProto) -> Run:
    """A run of a plan."""
    session = compiler.load(compiler.compile(model), threads=1)
    return lambda x: session.run({"h0": x})["y"]


def theirs(model: onnx.ModelProto) -> Run:
    """A run of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: np.asarray(session.run(["y"], {"h0": x})[0])


def times(runs: list[Run], x: Array, rounds: int) -> list[list[float]]:
    """For each run, its processor times in seconds."""
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for each, run in zip(found, runs, strict=True):
            began = time.process_time()
            run(x)
            if turn:  # the first round is a warm-up
                each.append(time.process_time() - began)
    return found


def ratio(ones: list[float], others: list[float]) -> str:
    """The median of `ones / others`, and its quartiles."""
    low, median, high = statistics.quantiles([a / b for a, b in zip(ones, others, strict=True)], n=4)
    return f"{median:.2f} ({low:.2f}–{high:.2f})"


def table(size: int, rows: dict[int, int], layers: int) -> None:
    """Print the rows of the table for one size, from sessions with this number of layers."""
    codes, scales = weights(size, layers)
    models = [low_bit(size, level, codes, scales) for level in (4, 1)]
    wide = plain(size, codes[:LAYERS], scales[:LAYERS])
    runs = [ours(models[0]), ours(models[1]), theirs(models[0]), ours(wide)]
    single = low_bit(size, 4, codes[:1], scales[:1])
    one, other, matrix = ours(single), theirs(single), dequantized(codes[0], scales[0])
    for count, rounds in rows.items():
        x = np.random.default_rng(count).standard_normal((count, size), np.float32)
        found = times(runs, x, rounds)
        found[3] = [each * layers / LAYERS for each in found[3]]
        exact = x.astype(np.float64) @ matrix.T
        errors = [float(np.linalg.norm(run(x) - exact) / np.linalg.norm(exact)) for run in (one, other)]
        product = statistics.median(found[0]) / layers
        cells = [f"{product * 1e3:.3f}", *(ratio(found[0], found[i]) for i in (1, 3, 2)), *(f"{e:.4f}" for e in errors)]
        print(f"| {count} × {size} × {size} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    print("| rows × K × N | ms | ÷ exact | ÷ float32 weights | ÷ onnxruntime | error | onnxruntime's error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for each in [int(argument) for argument in sys.argv[1:]] or [2048, 4096]:
        table(each, FEW, -(-CACHES // (each * each // 2)))
        table(each, MANY, LAYERS)
