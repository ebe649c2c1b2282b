"""MoE and QMoE against onnxruntime, and against their formulas where onnxruntime's CPU provider lacks a form."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, integers, normal

TOKENS, HIDDEN, INTER, EXPERTS = 5, 32, 64, 2
DIMS = {0: "T _", 1: "T _"}


def floats(*shape: int, seed: int, dtype: Any = np.float32) -> Array:
    """Weights that keep results near 1."""
    return (normal(*shape, seed=seed) / np.sqrt(shape[-1])).astype(dtype)


def moe(
    name: str, kind: str = "relu", *, bias: bool = True, k: int = 1, dtype: Any = np.float32, **options: Any
) -> Any:
    rows = INTER * (2 if kind == "swiglu" and options.get("swiglu_fusion") else 1)
    shapes = [(rows, HIDDEN), (HIDDEN, INTER), *([(INTER, HIDDEN)] if options.pop("third", False) else [])]
    experts = options.pop("experts", EXPERTS)
    x, scores = options.pop("x", normal(TOKENS, HIDDEN)), options.pop("scores", normal(TOKENS, experts, seed=1))
    inputs: list[Array | None] = [x, scores]
    for seed, shape in enumerate(shapes):
        inputs += [floats(experts, *shape, seed=seed), floats(experts, shape[0], seed=9 + seed) if bias else None]
    inputs = [each if each is None else each.astype(dtype) for each in inputs]
    weights = [index for index in range(2, len(inputs)) if inputs[index] is not None]
    fields = {"constants": weights, "dims": DIMS, "k": k, "activation_type": kind}
    return case("MoE", *inputs, name=name, **{**fields, **options})


GATED = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.5}

CASES = [
    *(moe(kind, kind) for kind in ("relu", "gelu", "silu", "identity")),
    moe("swiglu", "swiglu", swiglu_fusion=1),
    moe("swiglu with a limit", "swiglu", swiglu_fusion=1, **GATED),
    moe("two of four experts", k=2, experts=4),
    moe("normalized", k=2, experts=3, normalize_routing_weights=1),
    moe("every expert", k=EXPERTS),
    moe("one expert", experts=1),
    moe("no bias", "silu", bias=False),
    moe("run-time weights", "silu", constants=()),
    moe("sequences", "silu", x=normal(1, TOKENS, HIDDEN), dims={0: "B S _", 1: "T _"}),
    moe("all tokens to one expert", "silu", k=1, scores=np.float32([[0, 1]] * TOKENS)),
    moe("no tokens", "silu", x=normal(0, HIDDEN), scores=normal(0, EXPERTS)),
    moe("float16", "silu", dtype=np.float16, **HALF),
    moe("run-time weights of float16", "silu", dtype=np.float16, constants=(), **HALF),
]


def packed(codes: Array, bits: int) -> Array:
    """The codes of a row, the first one in the lowest bits of the first byte."""
    count = 8 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % count)])
    parts = [codes[..., index::count] << np.uint8(bits * index) for index in range(count)]
    return np.bitwise_or.reduce(parts)


def quantized(
    rows: int, columns: int, bits: int, block: int, has_zeros: bool, seed: int, experts: int
) -> list[Array | None]:
    """Codes, scales and zero points."""
    blocks = columns // block if block else 1
    codes = integers(0, 1 << bits, experts, rows, columns, dtype=np.uint8, seed=seed)
    scales = (0.5 + np.abs(normal(experts, rows, blocks, seed=seed))) / (columns**0.5 * (1 << bits))
    zeros = integers(0, 1 << bits, experts, rows, blocks, dtype=np.uint8, seed=seed + 1)
    scales = scales.astype(np.float32) if block else scales[..., 0].astype(np.float32)
    return [packed(codes, bits), scales, packed(zeros if block else zeros[..., 0], bits) if has_zeros else None]


def qmoe(name: str, bits: int = 4, block: int = 0, *, zeros: bool = False, kind: str = "swiglu", **options: Any) -> Any:
    gated, dtype = kind == "swiglu", options.pop("dtype", np.float32)
    second, third = options.get("fc2_expert_weight_bits", bits), options.pop("third", False)
    experts = options.pop("experts", EXPERTS)
    fusion = options.pop("swiglu_fusion", 1)
    rows = INTER * (2 if gated and fusion else 1)
    layers = [
        quantized(rows, HIDDEN, bits, block, zeros, 3, experts),
        quantized(HIDDEN, INTER, second, block, zeros, 5, experts),
        quantized(INTER, HIDDEN, bits, block, zeros, 7, experts) if third else [None] * 3,
    ]
    inputs: list[Array | None] = [normal(TOKENS, HIDDEN), normal(TOKENS, experts, seed=1)]
    for seed, (codes, scales, _) in enumerate(layers):
        sizes = () if codes is None else codes.shape[:2]
        inputs += [codes, scales, floats(*sizes, seed=11 + seed) if sizes and options.get("k", 2) > 1 else None]
    inputs += [each[2] for each in layers]
    if (mixing := options.pop("router_weights", None)) is not None:
        inputs.append(mixing)
    inputs = [each.astype(dtype) if each is not None and each.dtype == np.float32 else each for each in inputs]
    fields: dict[str, Any] = {"k": 2, "activation_type": kind, "expert_weight_bits": bits, "dims": DIMS}
    fields |= {"constants": [i for i in range(2, 14) if i < len(inputs) and inputs[i] is not None]}
    fields |= {"swiglu_fusion": fusion} | GATED if gated else {}
    fields |= {"block_size": block} if block else {}
    return case("QMoE", *inputs, name=name, **{**fields, **options})


MIXING = np.abs(normal(TOKENS, EXPERTS, seed=4))
CASES += [
    *(qmoe(f"{bits} bits", bits) for bits in (4, 8, 2)),
    *(qmoe(f"{bits} bits, zero points", bits, zeros=True) for bits in (4, 8, 2)),
    qmoe("blocks", block=32),
    qmoe("blocks, zero points", block=16, zeros=True),
    qmoe("silu", kind="silu"),
    qmoe("normalized", normalize_routing_weights=1),
    qmoe("two of four experts", block=16, experts=4),
    qmoe("no bias, one expert of a token", k=1),
    qmoe("router weights", router_weights=MIXING),
    qmoe("normalized router weights", router_weights=MIXING, normalize_routing_weights=1),
    qmoe("run-time weights", constants=(), zeros=True),
    qmoe("run-time weights in blocks", block=16, constants=(), zeros=True),
    qmoe("raw layout, precise", block=32, weights_prepacked=0, accuracy_level=1, quant_type="int"),
    qmoe("float16", block=16, zeros=True, dtype=np.float16, **HALF),
    qmoe("run-time weights of float16", zeros=True, dtype=np.float16, constants=(), **HALF),
]


@pytest.mark.parametrize("found", CASES.copy())
def test_equals_onnxruntime(found: Case) -> None:
    check(found)


def by_formula(found: Case) -> Array:
    """The result in double precision, as the schemas of MoE and QMoE state it."""
    options, inputs = found.attributes, [None if each is None else each.astype(float) for each in found.inputs]
    layers = [dequantized(found, layer) for layer in range(3)] if found.op_type == "QMoE" else [*inputs[2::2], None][:3]
    biases = inputs[4:11:3] if found.op_type == "QMoE" else [*inputs[3::2], None][:3]
    x, scores = inputs[0], inputs[1]
    assert x is not None and scores is not None and layers[0] is not None and layers[1] is not None
    result = np.zeros_like(x)
    for token, row in enumerate(scores):
        chosen = np.argsort(-row)[: options["k"]]
        factors = np.exp(row - row.max())
        factors /= factors[chosen].sum() if found.op_type == "QMoE" else factors.sum()
        for expert in chosen:
            results = [
                None if each is None else each[expert] @ x[token] + (0 if bias is None else bias[expert])
                for each, bias in ((layers[0], biases[0]), (layers[2], biases[2]))
            ]
            second = layers[1][expert] @ activated(options, *results) + (0 if biases[1] is None else biases[1][expert])
            result[token] += factors[expert] * second
    return result.astype(found.inputs[0].dtype)  # type: ignore[union-attr]


def dequantized(found: Case, layer: int) -> Array | None:
    """The weights `[experts, N, K]` of a layer of QMoE."""
    codes, scales, zeros = (
        found.inputs[i] if i < len(found.inputs) else None for i in (2 + 3 * layer, 3 + 3 * layer, 11 + layer)
    )
    if codes is None or scales is None:
        return None
    common = found.attributes["expert_weight_bits"]
    bits = found.attributes.get(f"fc{layer + 1}_expert_weight_bits", common)
    numbers = unpacked(codes, bits).astype(float)
    blocks = scales.shape[2] if scales.ndim == 3 else 1
    parts = numbers.reshape(*numbers.shape[:2], blocks, -1)
    offsets = (
        1 << (bits - 1)
        if zeros is None
        else unpacked(zeros, bits)[..., : blocks if scales.ndim == 3 else numbers.shape[1]]
    )
    shape = (*numbers.shape[:2], blocks, 1)
    return ((parts - np.broadcast_to(offsets, scales.shape).reshape(shape)) * scales.reshape(shape)).reshape(
        numbers.shape
    )


def unpacked(data: Array, bits: int) -> Array:
    parts = [data >> np.uint8(shift) & np.uint8((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*data.shape[:-1], -1)


def activated(options: dict[str, Any], first: Array, third: Array | None) -> Array:
    if options["activation_type"] == "silu":
        return np.asarray(first / (1 + np.exp(-first)))
    half = len(first) // 2
    gate, linear = {0: (first, third), 1: (first[::2], first[1::2]), 2: (first[:half], first[half:])}[
        options["swiglu_fusion"]
    ]
    limit = options.get("swiglu_limit", np.inf)
    gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit)
    return np.asarray(gate / (1 + np.exp(-options["activation_alpha"] * gate)) * (linear + options["activation_beta"]))


FORMULAS = [
    moe("two layers instead of one", "swiglu", swiglu_fusion=0, third=True, **GATED),
    moe("halves", "swiglu", swiglu_fusion=2, **GATED),
    moe("check of the formula", "swiglu", swiglu_fusion=1, **GATED),
    qmoe("check of the formula"),
    qmoe("two layers instead of one", swiglu_fusion=0, third=True, zeros=True),
    qmoe("two layers of blocks", block=16, swiglu_fusion=0, third=True, zeros=True),
    qmoe("halves", block=16, swiglu_fusion=2),
    qmoe("different widths", fc2_expert_weight_bits=8, fc1_expert_weight_bits=4, fc3_expert_weight_bits=4),
    *(qmoe(f"{bits} bits in blocks", bits, 32, accuracy_level=4) for bits in (8, 2)),
    *(qmoe(f"{bits} bits in blocks, zero points", bits, 16, zeros=True) for bits in (8, 2)),
]
"""Forms that onnxruntime's CPU provider lacks, or for which it rounds the tokens to 8 bits; and two that it has."""
CASES += FORMULAS


@pytest.mark.parametrize("found", FORMULAS)
def test_equals_the_formula(found: Case) -> None:
    check(dataclasses.replace(found, expected=[by_formula(found)]))


@pytest.mark.parametrize("found", [each for each in FORMULAS if "check" in str(each.id)])
def test_onnxruntime_equals_the_formula(found: Case) -> None:
    check(found)


def steps(found: Case) -> list[str]:
    plan = compiler.compile(found.model(symbolic=True))
    return [name for step in plan.document["main"]["steps"] for name in step["op"]]


def test_constant_weights_keep_their_bits() -> None:
    for given in (qmoe("", block=32, zeros=True), qmoe("", zeros=True), qmoe("", 8)):
        names = steps(given.values[0])
        assert names.count("MatMulNBits") == 2 * EXPERTS
        assert "Gemm" not in names


def changed(found: Any, attributes: dict[str, Any] | None = None, inputs: dict[int, Array] | None = None) -> Case:
    case: Case = found.values[0]
    given = [(inputs or {}).get(index, each) for index, each in enumerate(case.inputs)]
    return dataclasses.replace(case, inputs=given, attributes={**case.attributes, **(attributes or {})})


REFUSALS = [
    (changed(moe(""), {"k": 5}), "k is 5, but there are 2 experts"),
    (changed(moe(""), {"k": 0}), "k is 0, but there are 2 experts"),
    (changed(moe(""), {"activation_type": "geglu"}), "no activation_type 'geglu'"),
    (changed(moe(""), {"use_sparse_mixer": 1}), "use_sparse_mixer is 1"),
    (changed(moe("", "swiglu"), {"swiglu_fusion": 0}), "input 6 of MoE is missing"),
    (
        changed(moe(""), inputs={2: floats(EXPERTS, HIDDEN, INTER, seed=0)}),
        "axis 1 .* fc1_experts_weights is 32, not 64",
    ),
    (changed(moe(""), inputs={5: floats(EXPERTS, 7, seed=0)}), "axis 1 .* fc2_experts_bias is 7, not 32"),
    (changed(qmoe(""), {"expert_weight_bits": 3}), "only 2, 4 and 8"),
    (changed(qmoe(""), {"quant_type": "fp4"}), "quant_type is 'fp4'"),
    (changed(qmoe(""), {"weights_prepacked": 1}), "weights_prepacked is 1"),
    (changed(qmoe(""), {"block_size": 24}), "block_size 24"),
    (changed(qmoe(""), {"block_size": 32}), "fc1_scales has 2 dimensions, not 3"),
]


@pytest.mark.parametrize(("found", "reason"), REFUSALS, ids=[reason for _, reason in REFUSALS])
def test_refusals(found: Case, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(found.model())
