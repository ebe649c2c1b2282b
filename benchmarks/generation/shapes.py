"""The shapes of decoders, and seeded weights in blocks of 32 codes of 4 bits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BLOCK", "SHAPES", "Array", "Matrix", "Shape", "matrix", "numbers"]

BLOCK = 32
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Shape:
    """A decoder with grouped attention, rotary embeddings, root-mean-square norms and gated linear units.

    The table of embeddings is also the last matrix. With `has_bias`, queries, keys and values have a bias.
    """

    name: str
    architecture: str
    """llama.cpp's name."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    rotary_base: float
    has_bias: bool

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads

    @property
    def parts(self) -> tuple[int, int, int]:
        """The sizes of the queries, keys and values of a token."""
        return self.hidden, self.kv_heads * self.head, self.kv_heads * self.head

    def matrices(self) -> dict[str, tuple[int, int]]:
        """The matrices that each token reads, as `[outputs, inputs]`."""
        each = {
            "qkv": (sum(self.parts), self.hidden),
            "out": (self.hidden, self.hidden),
            "gate": (self.inner, self.hidden),
            "up": (self.inner, self.hidden),
            "down": (self.hidden, self.inner),
        }
        layers = {f"{layer}.{name}": sizes for layer in range(self.layers) for name, sizes in each.items()}
        return {**layers, "embedding": (self.vocabulary, self.hidden)}

    @property
    def weights(self) -> int:
        """The weights of all matrices."""
        return sum(rows * depth for rows, depth in self.matrices().values())

    @property
    def read(self) -> int:
        """The bytes of the weights that each token reads: codes of 4 bits, and a scale of 16 bits for each block."""
        return self.weights * (BLOCK // 2 + 2) // BLOCK


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("qwen2-0.5b", "qwen2", 24, 896, 14, 2, 4864, 151936, 1e6, has_bias=True),
        Shape("llama-3.2-1b", "llama", 16, 2048, 32, 8, 8192, 128256, 5e5, has_bias=False),
    )
}


@dataclass(frozen=True)
class Matrix:
    """A matrix of numbers `(code − 8) · scale`."""

    codes: Array
    """`uint8 [rows, blocks, 32]`: from 1 to 15, so that their mean is the zero point."""
    scales: Array
    """`float16 [rows, blocks]`."""

    def rows(self, first: int, end: int) -> Matrix:
        """Some rows."""
        return Matrix(self.codes[first:end], self.scales[first:end])

    def dequantized(self) -> Array:
        """The numbers, `float32 [rows, blocks · 32]`."""
        found = (self.codes - np.float32(8)) * self.scales[..., None].astype(np.float32)
        return np.asarray(found.reshape(len(found), -1))


def _random(name: str) -> np.random.Generator:
    """The random numbers of a weight: the same in every run."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


def matrix(name: str, rows: int, depth: int) -> Matrix:
    """A seeded matrix `[rows, depth]`, whose products with normal numbers are about as large as these."""
    random = _random(name)
    codes = random.integers(1, 16, (rows, depth // BLOCK, BLOCK), np.uint8)
    scales = (random.random((rows, depth // BLOCK), np.float32) + 0.5) / (4.3 * depth**0.5)
    return Matrix(codes, scales.astype(np.float16))


def numbers(name: str, size: int, mean: float) -> Array:
    """Seeded numbers near `mean`, `float32 [size]`: the factors of a norm, or a bias."""
    return np.asarray(mean + 0.1 * _random(name).standard_normal(size, np.float32))
