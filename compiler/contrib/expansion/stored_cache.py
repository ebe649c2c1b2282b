"""Caches of GroupQueryAttention that hold codes of 8 or 4 bits, with scales for the tensor or for each channel."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.kv_cache import Cache
from compiler.contrib.expansion.node import Node
from compiler.contrib.expansion.packed import UINT8, rows_of

__all__ = ["storage"]

_KINDS = ("NONE", "PER_TENSOR", "PER_CHANNEL")
_PARTS = (("k_quant_type", "past_key", 3), ("v_quant_type", "past_value", 4))
_TYPES = {8: ir.DataType.INT8, 4: UINT8}
"""The number of bits → the type of the cache. A byte has two codes of 4 bits, the low bits first, each plus 8."""


_Pair = tuple[ir.Value, ir.Value]


def storage(node: Node, new: Body, heads: int) -> _Codes | None:
    """How the cache holds keys and values; `None`: as they are. The query has the width `heads · H`."""
    if codes := _Codes.read(node, new, heads):
        return codes
    if node.optional(3) is not None:
        # onnxruntime rounds the new keys only in the outputs, and multiplies the queries by keys of the queries' type.
        node.dtype(3, "past_key", node.dtype(0, "query"))
    return None


@dataclass(frozen=True)
class _Codes:
    """The scales of keys and of values, `[1, 1, 1, 1]` or `[1, Nk, 1, H]`. A code c stands for `c · scale`."""

    bits: int
    size: int
    """H."""
    scales: _Pair
    dtype: ir.DataType
    """The type of the query."""

    @staticmethod
    def read(node: Node, new: Body, heads: int) -> _Codes | None:
        """The scales of the node's cache; `None` if the cache holds floats."""
        kinds = [node.string(name, "NONE") for name, _, _ in _PARTS]
        bits = node.int("kv_cache_bit_width", 0)
        if kinds == ["NONE", "NONE"] and not bits:
            node.refuse_input(12, "k_scale")
            node.refuse_input(13, "v_scale")
            return None
        if kinds[0] != kinds[1] or kinds[0] not in _KINDS[1:]:
            reason = f"k_quant_type {kinds[0]} and v_quant_type {kinds[1]} are not supported together"
            node.refuse("CC0202", f"{node.op_type}'s attributes {reason} with kv_cache_bit_width {bits}")
        size = node.split_size(0, "query", 2, heads)
        if bits not in _TYPES or (bits == 4 and size % 2):
            reason = f"kv_cache_bit_width is {bits} for heads of {size}; only 8, or 4 for an even size, are supported"
            node.refuse("CC0202", f"{node.op_type}'s attribute {reason}")
        for _, name, index in _PARTS:
            node.dtype(index, name, _TYPES[bits])
            node.check_sizes(index, name, {3: size * bits // 8})
        shape = (1, 1, 1, 1) if kinds[0] == "PER_TENSOR" else (1, node.positive("kv_num_heads"), 1, size)
        scales = (new.reshape(node.input(12), *shape), new.reshape(node.input(13), *shape))
        return _Codes(bits, size, scales, node.dtype(0, "query"))

    def store(self, new: Body, values: _Pair) -> _Pair:
        """The codes of new keys and values `[B, Nk, S, H]`, as the cache holds them."""
        key, value = (self._codes(new, *each) for each in zip(values, self.scales, strict=True))
        return key, value

    def load(self, new: Body, cache: Cache, keys: ir.Value) -> Cache:
        """The first `keys` keys and values of a cache, in the type of the query."""
        held = (new.slice(each, 2, 0, keys) for each in (cache.key, cache.value))
        key, value = (self._floats(new, *each) for each in zip(held, self.scales, strict=True))
        return Cache(key, value)

    def _codes(self, new: Body, values: ir.Value, scale: ir.Value) -> ir.Value:
        limit = 1 << (self.bits - 1)
        low, high = new.scalar(-limit, FLOAT), new.scalar(limit - 1, FLOAT)
        codes = new.op("Div", new.cast(values, FLOAT, self.dtype), scale)
        codes = new.op("Clip", new.op("Round", codes), low, high)
        if self.bits == 8:
            return new.op("Cast", codes, to=_TYPES[8])
        codes = new.op("Cast", new.op("Add", codes, new.scalar(limit, FLOAT)), to=UINT8)
        ends, last, step = new.numbers(self.size), new.numbers(3), new.numbers(2)
        first, second = (new.op("Slice", codes, new.numbers(start), ends, last, step) for start in (0, 1))
        return new.op("BitwiseOr", first, new.op("BitShift", second, new.scalar(4, UINT8), direction="LEFT"))

    def _floats(self, new: Body, codes: ir.Value, scale: ir.Value) -> ir.Value:
        if self.bits == 8:
            codes = new.op("Cast", codes, to=FLOAT)
        else:
            codes = new.op("Cast", rows_of(new, codes, 4, 4, self.size), to=FLOAT)
            codes = new.op("Sub", codes, new.scalar(8, FLOAT))
        return new.cast(new.op("Mul", codes, scale), self.dtype, FLOAT)
