"""The stated peak memory of a run: the least limit of memory under which it passes, or a bound of it."""

from __future__ import annotations

import onnx.parser
import pytest

import compiler
from compiler import Options, RunError
from compiler.accuracy.random_inputs import random_inputs
from tests.scratch.row import Feeds, Row, with_constants
from tests.scratch.table import ROWS

MEASURED = [
    "(float[64, 64] x) => (float[64, 64] y) { a = Softmax (x) b = MatMul (a, a) y = Tanh (b) }",
    "(float[4, 1024] x) => (float[1024, 4] y) { a = Exp (x) b = Transpose (a) y = Softmax (b) }",
    "(float[8, 256] x) => (float[8, 768] y) { a = Exp (x) b = Softmax (a) y = Concat <axis = 1> (a, b, x) }",
]


@pytest.mark.parametrize("text", MEASURED, ids=["products", "transpose", "concat"])
def test_a_run_needs_the_stated_peak(text: str) -> None:
    """The bound on memory under which a run just passes is the stated peak. The peak includes the inputs."""
    plan = compiler.compile(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}'))
    found = compiler.load(plan, threads=1).prepared()
    inputs = random_inputs(plan.inputs, {})
    assert found.unknown_steps == 0
    compiler.load(plan, threads=1, max_memory=found.peak_bytes).run(inputs, copy=True)
    with pytest.raises(compiler.RunError, match="max_memory"):
        compiler.load(plan, threads=1, max_memory=found.peak_bytes - 1).run(inputs, copy=True)


WIDENED = {
    "Exp": "(T[1024, 1024] x) => (T[a, b] y) { y = Exp (x) }",
    "Add": "(T[1024, 1024] x, T[1024, 1024] z) => (T[a, b] y) { y = Add (x, z) }",
    "Pow": "(T[1024, 1024] x, T[1024, 1024] z) => (T[a, b] y) { y = Pow (x, z) }",
    "MatMul": "(T[1024, 1024] x, T[1024, 1024] z) => (T[a, b] y) { y = MatMul (x, z) }",
    "Softmax": "(T[1024, 1024] x) => (T[a, b] y) { y = Softmax (x) }",
    "ReduceMean": "(T[2, 1048576] x) => (T[a, b] y) <int64[1] axes = {0}> { y = ReduceMean (x, axes) }",
    "LayerNormalization": "(T[1024, 1024] x, T[1024] s) => (T[a, b] y) { y = LayerNormalization (x, s) }",
    "BatchNormalization": "(T[1, 16, 256, 256] x, T[16] s) => (T[a, b, c, d] y)"
    " { y = BatchNormalization (x, s, s, s, s) }",
    "MaxPool": "(T[1, 16, 256, 256] x) => (T[a, b, c, d] y) { y = MaxPool <kernel_shape = [3, 3]> (x) }",
    "Attention": "(T[1, 1024, 1024] q, T[1, 1024, 1024] k, T[1, 1024, 1024] v) => (T[a, b, c] y)"
    " { y = Attention <q_num_heads = 8, kv_num_heads = 8> (q, k, v) }",
    "QuantizeLinear": "(T[1024, 1024] x, T s, uint8 z) => (uint8[a, b] y) { y = QuantizeLinear (x, s, z) }",
    "GatherElements": "(T[1024, 1024] x, int64[1024, 1024] i) => (T[a, b] y) { y = GatherElements (x, i) }",
}


@pytest.mark.parametrize("dtype", ["float", "float16", "bfloat16"])
@pytest.mark.parametrize("name", WIDENED)
def test_a_run_fits_in_the_stated_peak(name: str, dtype: str) -> None:
    """A kernel for 16-bit floats computes in float32, and therefore holds copies of its inputs and outputs."""
    graph = WIDENED[name].replace("T[", f"{dtype}[").replace("T s", f"{dtype} s")
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> agraph {graph}')
    plan = compiler.compile(made)
    found = compiler.load(plan, threads=2).prepared()
    assert found.unknown_steps == 0
    outputs = compiler.load(plan, threads=2, max_memory=found.peak_bytes).run(random_inputs(plan.inputs, {}))
    assert sum(value.nbytes for value in outputs.values()) <= found.peak_bytes


SMALL = {"n": 520, "m": 520}
"""The sizes of rows without sizes. A float32 buffer has a little more than 1 MiB, so it does not fit a cache."""


def stated_plan(row: Row) -> tuple[compiler.Plan, Feeds, int] | None:
    """The plan of a row for the sizes of its inputs, the inputs, and the stated peak; `None` if a step states none.

    Inputs of a few numbers such as axes are constants too.
    """
    feeds = row.feeds({name: size for name, size in SMALL.items() if name not in row.given})
    numbers = [name for name, array in feeds.items() if name in row.given and array.size <= 8]
    constants = {*row.constants, *numbers}
    model = with_constants(onnx.parser.parse_model(row.graph), feeds, constants)
    feeds = {name: array for name, array in feeds.items() if name not in constants}
    dims = {}
    for info in model.graph.input:
        named = zip(info.type.tensor_type.shape.dim, feeds[info.name].shape, strict=True)
        dims.update({dim.dim_param: size for dim, size in named if dim.dim_param})
    if any("y" in node.output for node in model.graph.node):
        model.graph.output.add().name = "y"  # otherwise, the compiler would compute its size alone
    plan = compiler.compile(model, Options(**{"optimize": False, "dims": dims} | row.options))
    found = compiler.load(plan, threads=2).prepared()
    return None if found.unknown_steps else (plan, feeds, found.peak_bytes)


@pytest.mark.parametrize("part", range(4))
def test_every_operator_runs_within_its_stated_peak(part: int) -> None:
    stated = [found for row in ROWS[part::4] if (found := stated_plan(row))]
    beyond = []
    for plan, feeds, peak in stated:
        try:
            compiler.load(plan, threads=2, max_memory=peak).run(feeds, copy=True)
        except RunError as error:
            beyond.append(f"{error.op} in {peak} bytes: {error.message}")
    assert not beyond
    assert len(stated) > len(ROWS) / 8
