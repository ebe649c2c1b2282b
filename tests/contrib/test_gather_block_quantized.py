import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Case, case, check, integers, normal

OP = "GatherBlockQuantized"
INDICES = integers(-6, 6, 2, 3)
DIMS = {1: "B S"}


def table(kind: str, *shape: int, axis: int, zeros: bool, dtype: Any = np.float32) -> list[Any]:
    """Codes, scales and zero points, for blocks of 16 along an axis."""
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // 16)
    low = -8 if kind == "int4" else 0
    codes = integers(low, low + 16, *shape).astype(kind)
    return [
        *(codes, (0.1 + np.abs(normal(*blocks))).astype(dtype)),
        integers(low, low + 16, *blocks, seed=1).astype(kind) if zeros else None,
    ]


def packed(bits: int, *shape: int, zeros: bool, dtype: Any = np.float32) -> list[Any]:
    """Bytes of codes, scales and bytes of zero points, for blocks of 16 along the last axis."""
    blocks = -(-shape[-1] // 16)
    codes = integers(0, 256, *shape[:-1], shape[-1] * bits // 8, dtype=np.uint8)
    scales = (0.1 + np.abs(normal(*shape[:-1], blocks))).astype(dtype)
    return [codes, scales, integers(0, 256, *shape[:-1], -(-blocks * bits // 8), dtype=np.uint8) if zeros else None]


def given(name: str, found: list[Any], **options: Any) -> Any:
    codes, scales, zeros = found
    constants = (0, 2) if zeros is None else (0, 2, 3)
    fields = {"constants": constants, "dims": DIMS, "block_size": 16, **options}
    return case(OP, codes, fields.pop("indices", INDICES), scales, zeros, name=name, **fields)


CASES = [
    *(
        given(f"{kind}, zeros={zeros}", table(kind, 6, 32, axis=1, zeros=zeros))
        for kind in ("int4", "uint4")
        for zeros in (0, 1)
    ),
    given(
        "quantized before the gathered axis", table("int4", 32, 6, axis=0, zeros=True), gather_axis=1, quantize_axis=0
    ),
    given("three axes", table("uint4", 6, 3, 32, axis=2, zeros=True), quantize_axis=2),
    given("middle axes", table("uint4", 3, 6, 32, axis=2, zeros=True), gather_axis=1, quantize_axis=-1),
    given("one axis", table("int4", 6, 32, axis=0, zeros=True), gather_axis=0, quantize_axis=0),
    given("partial block", table("int4", 6, 40, axis=1, zeros=True)),
    given("int32 indices", table("int4", 6, 32, axis=1, zeros=True), indices=INDICES.astype(np.int32)),
    given("one index", table("int4", 6, 32, axis=1, zeros=True), indices=np.array(2), dims={}),
    given("run-time table", table("int4", 6, 32, axis=1, zeros=True), constants=()),
    *(
        given(f"bytes of {bits} bits, zeros={zeros}", packed(bits, 6, 64, zeros=zeros), bits=bits)
        for bits in (2, 4, 8)
        for zeros in (0, 1)
    ),
    given("bytes, three axes", packed(4, 6, 2, 48, zeros=True), bits=4, quantize_axis=2),
    given("run-time bytes", packed(4, 6, 48, zeros=True), constants=()),
    given("float16", table("int4", 6, 32, axis=1, zeros=True, dtype=np.float16), **HALF),
    given("float16 bytes", packed(4, 6, 64, zeros=True, dtype=np.float16), **HALF),
    given("blocks of 32", [packed(4, 6, 64, zeros=False)[0], normal(6, 2), None], block_size=32),
]


@pytest.mark.parametrize("found", CASES)
def test_equals_onnxruntime(found: Case) -> None:
    check(found)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"bits": 8}, "bits is 8"),
        ({"block_size": 24}, "block_size 24"),
        ({"gather_axis": 2}, "gather_axis is 2"),
        ({"quantize_axis": -3}, "quantize_axis is -3"),
    ],
)
def test_refusals(attributes: dict[str, int], reason: str) -> None:
    found: Case = given("", table("int4", 6, 32, axis=1, zeros=True)).values[0]
    with pytest.raises(CompileError, match=reason):
        compiler.compile(dataclasses.replace(found, attributes={**found.attributes, **attributes}).model())


def test_bytes_need_the_last_axis() -> None:
    found: Case = given("", packed(4, 6, 64, zeros=False), quantize_axis=0, gather_axis=1).values[0]
    with pytest.raises(CompileError, match="quantize_axis -1"):
        compiler.compile(found.model())


def test_small_floats_are_refused() -> None:
    codes = normal(6, 32).astype(ml_dtypes.float8_e4m3fn)
    with pytest.raises(CompileError, match="element type"):
        compiler.compile(Case(OP, [codes, INDICES, normal(6, 2), None], {"block_size": 16}, constants=(0, 2)).model())
