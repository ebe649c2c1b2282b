"""Times products of plans with `precision` beside the same products in float32, on one thread.

`python benchmarks/rounded_products.py [PRECISION]...` prints the median ratio and its quartiles for each size
`rows × K × N`. All plans take turns in one process. `CANDLE_PLAN_ISA=avx2` shows processors without AVX-512.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
import onnx.helper
import onnx.numpy_helper

import compiler
from compiler.options import Precision

SIZES = (
    (1, 768, 3072),
    (8, 768, 3072),
    (128, 768, 3072),
    (128, 768, 64),
    (512, 512, 512),
    (1, 768, 768),
    (16, 768, 768),
    (128, 768, 768),
    (1500, 384, 1536),
)
ROUNDS, RUNS = 40, 5
PRECISIONS: tuple[Precision, ...] = ("f16", "bf16", "int8")


def model(rows: int, depth: int, columns: int) -> onnx.ModelProto:
    """A product `[rows, depth] · [depth, columns]` with a constant right operand."""
    weights = np.random.default_rng(0).normal(size=(depth, columns)).astype(np.float32)
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (rows, depth))]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (rows, columns))]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", inputs, outputs, [onnx.numpy_helper.from_array(weights, "w")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


def ratios(rows: int, depth: int, columns: int, precisions: tuple[Precision, ...]) -> list[list[float]]:
    """For each precision, the time ÷ the time in float32 in each round."""
    source = model(rows, depth, columns)
    plans = [compiler.compile(source, compiler.Options(precision=each)) for each in ("f32", *precisions)]
    sessions = [compiler.load(plan, threads=1) for plan in plans]
    inputs = {"x": np.random.default_rng(1).normal(size=(rows, depth)).astype(np.float32)}
    found: list[list[float]] = [[] for _ in precisions]
    for _ in range(ROUNDS + 1):
        times = []
        for session in sessions:
            began = time.process_time()
            for _ in range(RUNS):
                session.run(inputs)
            times.append(time.process_time() - began)
        for each, seconds in zip(found, times[1:], strict=True):
            each.append(seconds / times[0])
    return [each[1:] for each in found]  # the first round is a warm-up


if __name__ == "__main__":
    chosen = tuple(each for each in PRECISIONS if each in (sys.argv[1:] or PRECISIONS))
    print(f"{'rows × K × N':>18}  " + "  ".join(f"{each:<16}" for each in chosen))
    for size in SIZES:
        quartiles = [statistics.quantiles(each, n=4) for each in ratios(*size, chosen)]
        cells = (f"{median:.2f} ({low:.2f}–{high:.2f})" for low, median, high in quartiles)
        print(f"{' × '.join(map(str, size)):>18}  " + "  ".join(f"{cell:<16}" for cell in cells))
