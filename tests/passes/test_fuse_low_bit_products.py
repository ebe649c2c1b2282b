"""Products with weights of 2, 4 and 8 bits: the plan keeps the codes, and its results are those of exact weights."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from compiler.frontend.load import load_model
from compiler.passes.fuse_low_bit_products import fuse_low_bit_products

RANDOM = np.random.default_rng(5)
LIMITS = {"int2": (-2, 2), "uint2": (0, 4), "int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}
WITHOUT_BLOCKS = 0


class Weights:
    """Codes `[N, K]` with a scale, and a zero point if asked, for each block of a row."""

    def __init__(self, dtype, n, k, block, *, zeros=False, scale_type=np.float32):
        low, high = LIMITS[dtype]
        self.dtype, self.block = np.dtype(getattr(ml_dtypes, dtype, dtype)), block
        count = -(-k // block) if block else 1
        self.codes = RANDOM.integers(low, high, (n, k))
        self.scales = (0.1 + 0.1 * RANDOM.random((n, count))).astype(scale_type)
        self.zeros = RANDOM.integers(low, high, (n, count)) if zeros else None

    @property
    def exact(self):
        """`W [N, K]` in double precision."""
        k = self.codes.shape[1]
        spread = np.arange(k) // (self.block or k)
        zeros = 0 if self.zeros is None else self.zeros[:, spread]
        return (self.codes - zeros) * self.scales.astype(np.float64)[:, spread]


def model_of(weights, *, operator="MatMul", turned=False, a=("M",), bias=False, attributes=None, **options):
    """`A · Wᵀ`. If `turned`, the model stores `W`, with a transposition; otherwise it stores `Wᵀ`."""
    n, k = weights.codes.shape
    stored = [weights.codes, weights.scales, *([] if weights.zeros is None else [weights.zeros])]
    if not weights.block:
        stored[1:] = [array.ravel() for array in stored[1:]]
    axis = 1 if turned == bool(weights.block) else 0
    stored = [array if turned else array.T for array in stored]
    dtypes = [weights.dtype, weights.scales.dtype, weights.dtype]
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(array).astype(dtype), name)
        for array, dtype, name in zip(stored, dtypes, "wsz", strict=False)
    ]
    blocks = {"block_size": weights.block} if weights.block else {}
    nodes = [helper.make_node("DequantizeLinear", list("wsz"[: len(stored)]), ["d"], axis=axis, **blocks)]
    given = dict(attributes or {})
    if turned and operator == "Gemm":
        given["transB"] = 1
    elif turned:
        nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
    if bias:
        constants.append(numpy_helper.from_array(np.arange(n, dtype=np.float32), "c"))
    operands = ["x", nodes[-1].output[0], *(["c"] if bias else [])]
    nodes.append(helper.make_node(operator, operands, ["y"], **given))
    kind = helper.np_dtype_to_tensor_dtype(weights.scales.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, [*a, k])]
    if options.get("run_time"):
        index = next(i for i, constant in enumerate(constants) if constant.name == options["run_time"])
        constant = constants.pop(index)
        inputs.append(helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", kind, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def steps_of(plan):
    return [next(iter(step["op"])) for step in plan.document["main"]["steps"]]


def check(weights, model, *, rows=3, bias=False, steps=("MatMulNBits",), rtol=1e-6):
    """The plan has these steps, and its result is the product with the exact weights."""
    x = RANDOM.standard_normal((rows, weights.codes.shape[1])).astype(weights.scales.dtype)
    plan = compiler.compile(model, compiler.Options(verify_passes=True))
    assert steps_of(plan) == list(steps)
    (found,) = compiler.load(plan, threads=2).run({"x": x}).values()
    expected = x.astype(np.float64) @ weights.exact.T + (np.arange(len(weights.exact)) if bias else 0)
    assert found.dtype == weights.scales.dtype
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=rtol * np.abs(expected).max())
    return plan


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", LIMITS)
def test_codes_of_every_type(dtype, turned, zeros):
    weights = Weights(dtype, 6, 40, 16, zeros=zeros)
    check(weights, model_of(weights, turned=turned))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("block", [16, 32, 48, 64, 100, 128])
@pytest.mark.parametrize("k", [20, 96, 100])
def test_blocks_of_every_size(k, block, turned):
    weights = Weights("int4", 5, k, block, zeros=True)
    fused = block % 16 == 0 or block >= k
    steps = ["MatMulNBits"] if fused else ["MatMul"]
    check(weights, model_of(weights, turned=turned), steps=steps)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["int2", "uint4"])
def test_one_scale_for_each_output(dtype, turned):
    weights = Weights(dtype, 7, 40, WITHOUT_BLOCKS, zeros=True)
    check(weights, model_of(weights, turned=turned))


def test_one_scale_for_all():
    weights = Weights("uint4", 7, 40, WITHOUT_BLOCKS)
    weights.scales[:] = 0.25
    model = model_of(weights)
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.float32(0.25), "s"))
    check(weights, model)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_gemm(turned, bias):
    weights = Weights("int4", 6, 64, 32, zeros=True)
    check(weights, model_of(weights, operator="Gemm", turned=turned, bias=bias), bias=bias)


@pytest.mark.parametrize(("scale_type", "rtol"), [(np.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3)])
def test_halves(scale_type, rtol):
    weights = Weights("uint4", 6, 64, 32, zeros=True, scale_type=scale_type)
    check(weights, model_of(weights), rtol=rtol)


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 9, 33])
def test_any_number_of_rows(rows):
    weights = Weights("uint4", 150, 330, 32, zeros=True)
    check(weights, model_of(weights), rows=rows)


def test_a_vector():
    weights = Weights("int4", 6, 64, 32)
    model = model_of(weights, a=())
    x = RANDOM.standard_normal(64).astype(np.float32)
    (found,) = compiler.load(compiler.compile(model), threads=1).run({"x": x}).values()
    np.testing.assert_allclose(found, weights.exact @ x, rtol=1e-5, atol=1e-5)


def test_the_plan_keeps_the_codes():
    weights = Weights("int4", 512, 512, 32)
    plan = check(weights, model_of(weights))
    assert len(plan.data) < 512 * 512 / 2 + 512 * 16 * 4 + 10_000
    (step,) = compiler.load(plan).prepared().steps
    assert step.packed_bytes < 512 * 512 / 2 + 512 * 16 * 4 + 1000


@pytest.mark.parametrize(
    ("weights", "options", "reason"),
    [
        (Weights("int8", 6, 64, WITHOUT_BLOCKS), {}, "8 bits and no blocks"),
        (Weights("int4", 6, 64, 20), {}, "no multiple of 16"),
        (Weights("int4", 6, 64, 32), {"run_time": "w"}, "not constant"),
        (Weights("int4", 6, 64, 32), {"run_time": "s"}, "not constant"),
        (Weights("int4", 6, 64, 32, zeros=True), {"run_time": "z"}, "not constant"),
        (Weights("int4", 6, 64, 32), {"operator": "Gemm", "attributes": {"alpha": 2.0}}, "scales its operands"),
    ],
    ids=["no blocks", "small blocks", "weights", "scales", "zero points", "alpha"],
)
def test_other_products_stay(check_pass, weights, options, reason):
    model = load_model(model_of(weights, **options)).model
    report = check_pass(fuse_low_bit_products, model, same_results=None)
    assert not report.changed
    assert [reason in miss.reason for miss in report.missed] == [True]


def test_blocks_along_the_outputs_stay(check_pass):
    weights = Weights("int4", 32, 32, 32)
    model = model_of(weights)
    model.graph.node[0].attribute[0].i = 1  # the axis
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones((32, 1), np.float32), "s"))
    report = check_pass(fuse_low_bit_products, load_model(model).model, same_results=None)
    assert [miss.reason.startswith("the scales are not along the depth") for miss in report.missed] == [True]


def test_weights_with_other_readers_are_fused_too(check_pass):
    weights = Weights("int4", 32, 32, 32)
    model = model_of(weights)
    model.graph.output.append(helper.make_tensor_value_info("d", TensorProto.FLOAT, None))
    report = check_pass(fuse_low_bit_products, load_model(model).model, same_results=None)
    assert [fired.rule for fired in report.fired] == ["FuseLowBitProduct"]
