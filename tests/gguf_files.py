"""GGUF files, and matrices in the types of their blocks.

Sources: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md for files, and
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h for blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["KINDS", "Matrix", "Stored", "gguf", "matrix", "plain"]

Array = np.ndarray[Any, Any]
Stored = tuple[int, tuple[int, ...], bytes]
"""A tensor of a file: the number of its type, its shape and its bytes."""


class Matrix(NamedTuple):
    """A matrix, and the bytes of each row `[rows, bytes]` in a file."""

    numbers: Array
    kind: int
    rows: Array

    def stored(self) -> Stored:
        """The tensor."""
        return self.kind, self.numbers.shape, self.rows.tobytes()


def gguf(tensors: Mapping[str, Stored], metadata: Mapping[str, str | int] | None = None) -> bytes:
    """A GGUF file of version 3 with tensors and metadata."""
    given = metadata or {}
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(given)), b""
    for key, value in given.items():
        number = isinstance(value, int)
        head += _text(key) + (struct.pack("<II", 4, value) if number else struct.pack("<I", 8) + _text(str(value)))
    for name, (kind, shape, stored) in tensors.items():
        head += _text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", kind, len(data))
        data += stored + bytes(-len(stored) % 32)
    return head + bytes(-len(head) % 32) + data


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def plain(array: Array) -> Stored:
    """A tensor of float32 or float16."""
    return {"float32": 0, "float16": 1}[array.dtype.name], array.shape, np.ascontiguousarray(array).tobytes()


def matrix(kind: str, rows: int, depth: int, seed: int = 0, size: float = 0.1) -> Matrix:
    """A random matrix in one of `KINDS`, with numbers of about this size."""
    random = np.random.default_rng(seed)
    if kind in ("F32", "F16"):
        stored = (size * random.standard_normal((rows, depth))).astype(np.float32 if kind == "F32" else np.float16)
        return Matrix(stored.astype(np.float32), KINDS[kind], stored.view(np.uint8))
    numbers, blocks = _MAKERS[kind](random, rows * depth // (256 if kind.endswith("K") else 32), size)
    return Matrix(numbers.astype(np.float32).reshape(rows, depth), KINDS[kind], blocks.reshape(rows, -1))


def _scales(random: Any, count: int, size: float) -> Array:
    """Scales `float16 [count, 1]`."""
    return np.asarray((size * random.uniform(0.5, 1.5, (count, 1))).astype(np.float16))


def _halves(codes: Array) -> Array:
    """Bytes of two codes: the first half of the last axis is in the low bits."""
    low, high = np.split(codes.astype(np.uint8), 2, -1)
    return np.asarray(low | high << 4)


def _q8_0(random: Any, count: int, size: float) -> tuple[Array, Array]:
    scales, codes = _scales(random, count, size / 64), random.integers(-127, 128, (count, 32)).astype(np.int8)
    return codes * scales.astype(np.float32), np.hstack([scales.view(np.uint8), codes.view(np.uint8)])


def _q4_0(random: Any, count: int, size: float) -> tuple[Array, Array]:
    scales, codes = _scales(random, count, size / 4), random.integers(0, 16, (count, 32))
    return (codes - 8) * scales.astype(np.float32), np.hstack([scales.view(np.uint8), _halves(codes)])


def _q4_k(random: Any, count: int, size: float) -> tuple[Array, Array]:
    """Eight parts of 32 codes: `scale · a · code − minimum · b`, where a and b have 6 bits."""
    scales, minima = _scales(random, count, size / 128), _scales(random, count, size / 16)
    codes = random.integers(0, 16, (count, 8, 32))
    a, b = random.integers(1, 64, (2, count, 8)).astype(np.uint8)
    numbers = (scales.astype(np.float32) * a)[..., None] * codes - (minima.astype(np.float32) * b)[..., None]
    packed = [a[:, :4] | a[:, 4:] >> 4 << 6, b[:, :4] | b[:, 4:] >> 4 << 6, a[:, 4:] & 15 | b[:, 4:] << 4]
    pairs = _halves(codes.reshape(count, 4, 64)).reshape(count, -1)
    return numbers, np.hstack([scales.view(np.uint8), minima.view(np.uint8), *packed, pairs])


def _q6_k(random: Any, count: int, size: float) -> tuple[Array, Array]:
    """Sixteen parts of 16 codes: `scale · a · (code − 32)`, where a has 8 bits."""
    scales, a = _scales(random, count, size / 1024), random.integers(-127, 128, (count, 16)).astype(np.int8)
    codes = random.integers(0, 64, (count, 256))
    numbers = (scales.astype(np.float32) * a).repeat(16, 1) * (codes - 32)
    quarters = codes.reshape(count, 2, 4, 32)
    low = _halves((quarters & 15).reshape(count, 2, 128)).reshape(count, -1)
    upper = (quarters >> 4 << np.array([0, 2, 4, 6])[:, None]).sum(2).astype(np.uint8).reshape(count, -1)
    return numbers, np.hstack([low, upper, a.view(np.uint8), scales.view(np.uint8)])


KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}
"""The types → their numbers in a file."""
_MAKERS: dict[str, Callable[[Any, int, float], tuple[Array, Array]]] = {
    "Q4_0": _q4_0,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q6_K": _q6_k,
}
