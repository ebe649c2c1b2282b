"""Writes decoders as ONNX files with the operators that onnxruntime's tools write.

The graphs have GroupQueryAttention with rotary embeddings, MatMulNBits at `accuracy_level` 4 and fused norms. Their
output is the logits of the last token.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from benchmarks.generation.shapes import BLOCK, Array, Matrix, Shape, matrix, numbers

__all__ = ["CONTEXT", "EPSILON", "INT8", "write_onnx"]

CONTEXT = 2048
"""The largest number of tokens."""
EPSILON = 1e-5
INT8 = 4
"""The `accuracy_level` at which a product may round its left operand to 8 bits."""
_CONTRIB = "com.microsoft"


def packed(found: Matrix) -> Array:
    """The codes as MatMulNBits reads them, `uint8 [rows, blocks, 16]`: the first of two codes in the low bits."""
    return np.asarray(found.codes[..., ::2] | found.codes[..., 1::2] << 4)


class Decoder:
    """The graph of a decoder."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.tape = shape, Tape()
        self.floats = ir.TensorType(ir.DataType.FLOAT)

    def constant(self, name: str, array: Array) -> ir.Value:
        """An initializer."""
        return self.tape.initializer(ir.tensor(array, name=name))

    def contrib(self, op: str, inputs: list[ir.Value | None], outputs: int = 1, **attributes: Any) -> list[ir.Value]:
        """An operator of onnxruntime."""
        return list(self.tape.op_multi_out(op, inputs, attributes, num_outputs=outputs, domain=_CONTRIB))

    def product(self, x: ir.Value, name: str, found: Matrix) -> ir.Value:
        """`x · Wᵀ`."""
        rows, blocks = found.scales.shape
        weights = [
            self.constant(f"{name}.codes", packed(found)),
            self.constant(f"{name}.scales", found.scales.astype(np.float32)),
        ]
        sizes = {"N": rows, "K": blocks * BLOCK, "bits": 4, "block_size": BLOCK, "accuracy_level": INT8}
        return self.contrib("MatMulNBits", [x, *weights], **sizes)[0]

    def linear(self, x: ir.Value, name: str) -> ir.Value:
        """A linear layer with the matrix of a name."""
        return self.product(x, name, matrix(name, *self.shape.matrices()[name]))

    def factors(self, name: str) -> ir.Value:
        """The factors of a norm."""
        return self.constant(name, numbers(name, self.shape.hidden, 1))

    def embedded(self, ids: ir.Value, found: Matrix) -> ir.Value:
        """The rows of the table of embeddings, which has the codes and scales of the last product."""
        codes = self.constant("embedding.table", packed(found).reshape(self.shape.vocabulary, -1))
        scales = self.constant("embedding.table.scales", found.scales.astype(np.float32))
        options = {"bits": 4, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
        return self.contrib("GatherBlockQuantized", [codes, ids, scales], **options)[0]

    def tables(self) -> list[ir.Value | None]:
        """The cosines and sines of the rotary embeddings, `[context, head / 2]`."""
        half = self.shape.head // 2
        angles = np.arange(CONTEXT)[:, None] * self.shape.rotary_base ** (-np.arange(half) / half)
        tables = {"cosines": np.cos(angles), "sines": np.sin(angles)}
        return [self.constant(name, table.astype(np.float32)) for name, table in tables.items()]

    def lengths(self, mask: ir.Value) -> list[ir.Value | None]:
        """The index of the last token of each row, and the number of tokens, from the mask `[1, total]`."""
        op, one = self.tape.op, self.constant("one", np.array([1], np.int64))
        last = op("Cast", [op("Sub", [op("ReduceSum", [mask, one], {"keepdims": 0}), one])], {"to": ir.DataType.INT32})
        sizes = op("Shape", [mask])
        total = op("Gather", [sizes, self.constant("axis", np.array(1, np.int64))], {"axis": 0})
        return [last, op("Cast", [total], {"to": ir.DataType.INT32})]

    def attention(self, x: ir.Value, layer: int, past: list[ir.Value], others: list[ir.Value | None]) -> list[ir.Value]:
        """The output of a layer's attention, and the present keys and values."""
        shape, name = self.shape, f"{layer}.qkv"
        qkv = self.linear(x, name)
        if shape.has_bias:
            bias = self.constant(f"{name}.bias", numbers(f"{name}.bias", sum(shape.parts), 0))
            qkv = self.tape.op("Add", [qkv, bias])
        heads = {"num_heads": shape.heads, "kv_num_heads": shape.kv_heads, "do_rotary": 1}
        inputs = [qkv, None, None, *past, *others]
        y, *present = self.contrib("GroupQueryAttention", inputs, 3, **heads)
        return [self.linear(y, f"{layer}.out"), *present]

    def feed_forward(self, x: ir.Value, layer: int) -> ir.Value:
        """`down(silu(gate(x)) · up(x))`."""
        op = self.tape.op
        gate, up = (self.linear(x, f"{layer}.{name}") for name in ("gate", "up"))
        activated = op("Mul", [gate, op("Sigmoid", [gate])])
        return self.linear(op("Mul", [activated, up]), f"{layer}.down")

    def normalized(self, x: ir.Value, skip: ir.Value, name: str) -> tuple[ir.Value, ir.Value]:
        """The norm of a sum, and the sum."""
        found = self.contrib("SkipSimplifiedLayerNormalization", [x, skip, self.factors(name)], 4, epsilon=EPSILON)
        return found[0], found[3]

    def last(self, x: ir.Value) -> ir.Value:
        """The last token of `[1, n, hidden]`."""
        ends = (
            self.constant(name, np.array([at], np.int64)) for name, at in (("from", -1), ("to", 1 << 62), ("dim", 1))
        )
        return self.tape.op("Slice", [x, *ends])


def _input(name: str, kind: ir.DataType, shape: list[int | str]) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(kind), shape=ir.Shape(shape))


def built(shape: Shape) -> ir.Model:
    """The decoder. Its caches are the inputs `past_key_values.*` and the outputs `present.*`."""
    decoder = Decoder(shape)
    ids = _input("input_ids", ir.DataType.INT64, [1, "tokens"])
    mask = _input("attention_mask", ir.DataType.INT64, [1, "total"])
    caches = [
        [
            _input(f"past_key_values.{layer}.{kind}", ir.DataType.FLOAT, [1, shape.kv_heads, "past", shape.head])
            for kind in ("key", "value")
        ]
        for layer in range(shape.layers)
    ]
    others = [*decoder.lengths(mask), *decoder.tables()]
    table = matrix("embedding", shape.vocabulary, shape.hidden)
    x, outputs = decoder.embedded(ids, table), []
    options = {"epsilon": EPSILON, "axis": -1, "stash_type": 1}
    y = decoder.tape.op("SimplifiedLayerNormalization", [x, decoder.factors("0.norm")], options)
    for layer, past in enumerate(caches):
        attended, *present = decoder.attention(y, layer, past, others)
        outputs += present
        y, x = decoder.normalized(x, attended, f"{layer}.middle_norm")
        y, x = decoder.normalized(x, decoder.feed_forward(y, layer), f"{layer + 1}.norm")
    logits = decoder.product(decoder.last(y), "embedding", table)
    for value, name in zip(
        [logits, *outputs],
        ["logits", *(f"present.{at // 2}.{('key', 'value')[at % 2]}" for at in range(2 * shape.layers))],
        strict=True,
    ):
        value.name, value.type = name, decoder.floats
    logits.shape = ir.Shape([1, 1, shape.vocabulary])
    for value in outputs:
        value.shape = ir.Shape([1, shape.kv_heads, "total_or_past", shape.head])
    graph = ir.Graph(
        [ids, mask, *(each for pair in caches for each in pair)],
        [logits, *outputs],
        nodes=decoder.tape.nodes,
        initializers=decoder.tape.initializers,
        opset_imports={"": 21, _CONTRIB: 1},
        name=shape.name,
    )
    return ir.Model(graph, ir_version=10)


def write_onnx(shape: Shape, path: Path) -> None:
    """Write the decoder, and its weights to a file beside it."""
    ir.save(built(shape), path, external_data=f"{path.name}.data")
