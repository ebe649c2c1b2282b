"""Times products of plans with `precision="bf16"` beside the same products in float32, on one thread.

`python benchmarks/rounded_products.py` prints the quartiles of the ratio for each size `rows × K × N`. Both plans take
turns in one process. `CANDLE_PLAN_ISA=avx2` shows processors without AVX512_BF16.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import onnx.helper
import onnx.numpy_helper

import compiler

SIZES = ((1, 768, 3072), (8, 768, 3072), (128, 768, 3072), (128, 768, 64), (512, 512, 512))
ROUNDS, RUNS = 40, 5
OPTIONS = (compiler.Options(), compiler.Options(precision="bf16"))


def model(rows: int, depth: int, columns: int) -> onnx.ModelProto:
    """A product `[rows, depth] · [depth, columns]` with a constant right operand."""
    weights = np.random.default_rng(0).normal(size=(depth, columns)).astype(np.float32)
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (rows, depth))]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (rows, columns))]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", inputs, outputs, [onnx.numpy_helper.from_array(weights, "w")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


def ratios(rows: int, depth: int, columns: int) -> list[float]:
    """The time in bfloat16 ÷ the time in float32, in each round."""
    source = model(rows, depth, columns)
    plans = [compiler.compile(source, options) for options in OPTIONS]
    sessions = [compiler.load(plan, threads=1) for plan in plans]
    inputs = {"x": np.random.default_rng(1).normal(size=(rows, depth)).astype(np.float32)}
    found = []
    for _ in range(ROUNDS + 1):
        times = []
        for session in sessions:
            began = time.perf_counter()
            for _ in range(RUNS):
                session.run(inputs)
            times.append(time.perf_counter() - began)
        found.append(times[1] / times[0])
    return found[1:]  # the first round is a warm-up


if __name__ == "__main__":
    for size in SIZES:
        low, median, high = statistics.quantiles(ratios(*size), n=4)
        print(f"{' × '.join(map(str, size)):>18}  {median:.2f}  {low:.2f}–{high:.2f}")
