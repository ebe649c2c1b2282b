"""Small plans of one operator in several types, whose kernels share memory between threads, for compute-sanitizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.helper
import onnx.parser

import compiler
from gpu.files import Model

FLOATS = ("float16", "bfloat16", "float32", "float64")
WIDE = ("int32", "int64", "uint32", "uint64")
NARROW = ("int8", "uint8")
OPSET = 24

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Operator:
    """An operator, its attributes, the shapes of its inputs of the varied type, and the other inputs after these."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    types: tuple[str, ...] = ("float32",)
    attributes: dict[str, Any] = field(default_factory=dict)
    others: tuple[Any, ...] = ()
    outputs: int = 1


ROWS, IMAGE = (4, 300), (2, 4, 40, 40)
LARGE = (8, 64, 28, 28)
"""The shape of images for which convolutions use larger tiles."""
OPERATORS = {
    "softmax": Operator("Softmax", (ROWS,), FLOATS),
    "softmax_long": Operator("Softmax", ((2, 5000),), FLOATS),
    "layer_norm": Operator("LayerNormalization", (ROWS, (300,)), FLOATS),
    "rms_norm_by_single": Operator("RMSNormalization", (ROWS,), FLOATS[:2], {}, (np.ones(300, np.float32),)),
    "rms_norm_by_half": Operator("RMSNormalization", (ROWS,), ("float32",), {}, (np.ones(300, np.float16),)),
    "rms_norm_by_bfloat": Operator("RMSNormalization", (ROWS,), ("float32",), {}, (np.ones(300, ml_dtypes.bfloat16),)),
    "instance_norm": Operator("InstanceNormalization", (IMAGE, (4,), (4,)), FLOATS),
    "attention": Operator("Attention", ((1, 2, 70, 16),) * 3, FLOATS),
    "attention_wide": Operator(
        "Attention", ((1, 2, 70, 20), (1, 1, 130, 20), (1, 1, 130, 100)), ("float32",), {"is_causal": 1}
    ),
    "attention_of_few": Operator("Attention", ((1, 2, 8, 16), (1, 2, 40, 16), (1, 2, 40, 16)), ("float32",)),
    "conv": Operator("Conv", ((1, 16, 20, 20), (24, 16, 3, 3)), FLOATS),
    "conv_medium": Operator("Conv", (LARGE, (64, 64, 3, 3)), FLOATS),
    "conv_large": Operator("Conv", (LARGE, (128, 64, 3, 3)), FLOATS[:3]),
    "conv_transposed": Operator("ConvTranspose", ((1, 16, 12, 12), (16, 24, 4, 4)), ("float32",), {"strides": [2, 2]}),
    "transpose": Operator("Transpose", ((2, 40, 50),), (*FLOATS, "uint8"), {"perm": [0, 2, 1]}),
    "transpose_fours": Operator("Transpose", ((40, 50, 4),), ("float32",), {"perm": [1, 0, 2]}),
    "cumulative": Operator("CumSum", ((2, 3000),), (*FLOATS, *WIDE), {}, (np.array(1),)),
    "sum": Operator("ReduceSum", (ROWS,), (*FLOATS, *WIDE), {}, (np.array([1]),)),
    "sum_all": Operator("ReduceSum", ((3, 5000),), FLOATS, {}, (np.array([0, 1]),)),
    "product": Operator("ReduceProd", (ROWS,), (*FLOATS, *WIDE), {}, (np.array([1]),)),
    "largest": Operator("ReduceMax", (ROWS,), (*FLOATS, *WIDE, *NARROW), {}, (np.array([1]),)),
    "log_sum_exp": Operator("ReduceLogSumExp", (ROWS,), (*FLOATS, *WIDE), {}, (np.array([1]),)),
    "place": Operator("ArgMax", (ROWS,), (*FLOATS, *WIDE, *NARROW, "int16", "uint16"), {"axis": 1}),
    "top": Operator("TopK", ((2, 2000),), (*FLOATS, *WIDE, *NARROW, "int16", "uint16"), {}, (np.array([7]),), 2),
    "pool_max": Operator("MaxPool", (IMAGE,), FLOATS, {"kernel_shape": [32, 32]}),
    "pool_mean": Operator("AveragePool", (IMAGE,), FLOATS, {"kernel_shape": [32, 32]}),
    "pool_norm": Operator("LpPool", (IMAGE,), FLOATS, {"kernel_shape": [32, 32]}),
    "pool_codes": Operator("MaxPool", (IMAGE,), NARROW, {"kernel_shape": [32, 32]}),
    "scatter": Operator(
        "ScatterElements",
        (ROWS,),
        ("float32",),
        {"reduction": "add", "axis": 1},
        (np.arange(400).reshape(4, 100) % 7, np.ones((4, 100), np.float32)),
    ),
    # cuBLAS does not accept empty sums: the kernels of the module gemm compute them.
    "product_of_nothing": Operator("MatMul", ((3, 0), (0, 4)), FLOATS),
    "scores_of_nothing": Operator("Attention", ((1, 2, 5, 0), (1, 2, 5, 0), (1, 2, 5, 4)), FLOATS[:2], {"scale": 1.0}),
    "integer_product": Operator("MatMulInteger", ((40, 70), (70, 50)), NARROW),
    "range": Operator("DynamicQuantizeLinear", ((40, 300),), ("float32",), {}, (), 3),
    "quantized_product": Operator("QLinearMatMul", ((2, 40, 70),), NARROW),
    "quantized": Operator("QLinearConv", ((1, 16, 12, 12),), NARROW, {"pads": [1, 1, 1, 1]}),
}
MEAN = f"""<ir_version: 10, opset_import: ["" : {OPSET}]>
g (uint8[2, 40, 12, 12] x0) => (uint8[2, 40, 1, 1] y0) <float s = {{0.1}}, uint8 a = {{1}}, uint8 b = {{2}}> {{
    x = DequantizeLinear(x0, s, a)
    y = GlobalAveragePool(x)
    y0 = QuantizeLinear(y, s, b)
}}"""
"""A mean that optimization computes on codes."""
PER_GROUP = 14
"""The number of plans that share a process under compute-sanitizer."""


def groups() -> Iterator[Model]:
    """The plans in groups, without expected results."""
    plans = [plan for name, operator in OPERATORS.items() for plan in plans_of(name, operator)]
    plans.append(mean_of_codes())
    plans += map(product_with_codes, FLOATS[:3])
    count = -(-len(plans) // PER_GROUP)
    for number in range(count):
        yield {"name": f"group{number}", "group": plans[number::count]}


def plans_of(name: str, operator: Operator) -> Iterator[Model]:
    """The plans of an operator, one for each type."""
    for kind in operator.types:
        case = arrays(operator, kind)
        plan = compiler.compile(model(operator, case), compiler.Options(optimize=False))
        yield {"name": f"{name}_{kind}", "plan": plan.data, "cases": [case], "tolerance": None}


def mean_of_codes() -> Model:
    """The plan of `MEAN`."""
    case = {"x0": drawn(np.random.default_rng(0), (2, 40, 12, 12), np.dtype(np.uint8))}
    plan = compiler.compile(onnx.parser.parse_model(MEAN))
    return {"name": "mean_of_codes", "plan": plan.data, "cases": [case], "tolerance": None}


def product_with_codes(kind: str) -> Model:
    """The plan of a product of three rows with weights of 4 bits, which optimization keeps as codes."""
    generator = np.random.default_rng(0)
    dtype = onnx.helper.np_dtype_to_tensor_dtype(_dtype(kind))
    codes, scales = (drawn(generator, (40, size), np.dtype(np.float32)) for size in (96, 3))
    codes = np.floor(codes * 8).astype(np.int64)
    weights = [
        onnx.helper.make_tensor("codes", onnx.TensorProto.INT4, codes.shape, codes.ravel()),
        onnx.helper.make_tensor("scales", dtype, scales.shape, scales.ravel()),
    ]
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["codes", "scales"], ["w"], axis=1, block_size=32),
        onnx.helper.make_node("Transpose", ["w"], ["t"]),
        onnx.helper.make_node("MatMul", ["x0", "t"], ["y0"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(*end) for end in (("x0", dtype, (3, 96)), ("y0", dtype, (3, 40)))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    plan = compiler.compile(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10))
    case = {"x0": drawn(generator, (3, 96), _dtype(kind))}
    return {"name": f"product_with_codes_{kind}", "plan": plan.data, "cases": [case], "tolerance": None}


def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if kind == "bfloat16" else np.dtype(kind)


def arrays(operator: Operator, kind: str) -> dict[str, Array]:
    """The inputs of an operator in one type."""
    generator = np.random.default_rng(0)
    dtype = _dtype(kind)
    given = [drawn(generator, shape, dtype) for shape in operator.shapes]
    if operator.op in ("QLinearConv", "QLinearMatMul"):
        shape = (24, 16, 3, 3) if operator.op == "QLinearConv" else (2, 70, 50)
        given += quantized(dtype, drawn(generator, shape, np.dtype(np.int8)))
    else:
        given += [np.asarray(other) for other in operator.others]
    return {f"x{number}": each for number, each in enumerate(given)}


def drawn(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Random numbers of a type, with few distinct values, small enough for products and sums of the type."""
    numbers = generator.integers(0, 5, shape)
    return numbers.astype(dtype) if dtype.kind in "iu" else (0.5 + numbers / 8).astype(dtype)


def quantized(dtype: np.dtype[Any], weights: Array) -> list[Array]:
    """The inputs of an operator on codes after the first one: scales, zero points and weights."""
    scale, zero = np.asarray(np.float32(0.1)), np.zeros((), dtype)
    return [scale, zero, weights, scale, np.zeros((), np.int8), np.asarray(np.float32(2)), zero]


def model(operator: Operator, case: dict[str, Array]) -> onnx.ModelProto:
    """A model of one node."""
    outputs = [f"y{number}" for number in range(operator.outputs)]
    node = onnx.helper.make_node(operator.op, list(case), outputs, **operator.attributes)
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in case.items()
    ]
    ends = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = onnx.helper.make_graph([node], "g", infos, ends)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
