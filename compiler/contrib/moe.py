"""Mixtures of experts: MoE and QMoE. Each token uses a few of the experts."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body
from compiler.contrib.expansion.experts import Layer, Mixture, part
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.packed import UINT8, matrix
from compiler.ir.graph import constant_of

__all__: list[str] = []

_GPU_INPUTS = (
    *("fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale"),
    *("fc1_act_block_scale", "fc2_act_block_scale"),
)
"""The inputs of QMoE from index 15, which only GPU providers support."""


@expands("MoE")
def moe(node: Node, new: Body) -> ir.Value:
    """The sum of the results of each token's `k` experts, times their probabilities among all experts.

    The weights are `[experts, N, K]`.
    """
    mixture = Mixture.read(node, new, node.size(4, "fc2_experts_weights", 2))
    layers = []
    for layer, (rows, columns) in enumerate(mixture.shapes()):
        index = 2 + 2 * layer
        node.check_sizes(index, f"fc{layer + 1}_experts_weights", {0: mixture.experts, 1: rows, 2: columns})
        layers.append(Layer(partial(_floats, new, node.input(index)), mixture.bias(index + 1, layer)))
    probabilities = new.op("Softmax", mixture.scores, axis=-1)
    normalize = node.flag("normalize_routing_weights", False)
    return mixture.result(layers, mixture.of_chosen(probabilities, normalize=normalize))


def _floats(new: Body, weights: ir.Value, expert: int) -> ir.Value:
    return new.upcast(part(new, weights, expert))


@expands("QMoE")
def qmoe(node: Node, new: Body) -> ir.Value:
    """`MoE` with weights of 2, 4 or 8 bits, times the probabilities among the `k` experts.

    `router_weights` replaces these probabilities. The weights are bytes `[experts, N, K · bits / 8]`. A row has one
    scale, or one for each block of `block_size` elements.
    """
    for index, name in enumerate(_GPU_INPUTS, 15):
        node.refuse_input(index, name)
    if (kind := node.string("quant_type", "int")) != "int":
        node.refuse("CC0202", f"QMoE's attribute quant_type is {kind!r}; only 'int' is supported")
    node.choice("weights_prepacked", -1, 0)  # on a CPU, both mean the layout of the schema
    node.choice("accuracy_level", 0, 1, 2, 3, 4)  # how precise the result must be, at least
    bits = _bits(node)
    mixture = Mixture.read(node, new, node.size(5, "fc2_experts_weights", 2) * 8 // bits[1])
    layers = [
        Layer(_Codes(mixture, layer, bits[layer]).weights, mixture.bias(4 + 3 * layer, layer))
        for layer in range(len(mixture.shapes()))
    ]
    normalize, router_weights = node.flag("normalize_routing_weights", False), node.optional(14)
    if router_weights is None:
        return mixture.result(layers, new.op("Softmax", mixture.best, axis=-1))
    node.check_sizes(14, "router_weights", {1: mixture.experts})
    return mixture.result(layers, mixture.of_chosen(new.upcast(router_weights), normalize=normalize))


def _bits(node: Node) -> list[int]:
    """The bits of the weights of fc1, fc2 and fc3."""
    common = node.int("expert_weight_bits", 4)
    every = [node.int(f"fc{layer}_expert_weight_bits", common) for layer in (1, 2, 3)]
    for bits in every:
        if bits not in (2, 4, 8):
            node.refuse("CC0202", f"QMoE has expert_weight_bits of {bits}; only 2, 4 and 8 are supported")
    return every


class _Codes:
    """The quantized weights of a layer."""

    def __init__(self, mixture: Mixture, layer: int, bits: int) -> None:
        node, self.new = mixture.node, mixture.new
        self.node, self.bits, (self.rows, self.columns) = node, bits, mixture.shapes()[layer]
        block = node.int("block_size", 0)
        if block > 0 and (block < 16 or block & (block - 1) or self.columns % block):
            node.refuse(
                "CC0202", f"QMoE's attribute block_size {block} is no power of 2 from 16 that divides the columns"
            )
        self.block, self.is_blocked = (block, True) if block > 0 else (self.columns, False)
        name, index = f"fc{layer + 1}", 2 + 3 * layer
        self.codes, self.scales, self.zeros = node.input(index), node.input(index + 1), node.optional(11 + layer)
        sizes = {0: mixture.experts, 1: self.rows}
        node.dtype(index, f"{name}_experts_weights", UINT8)
        node.check_sizes(index, f"{name}_experts_weights", {**sizes, 2: self.columns * bits // 8})
        node.dtype(index + 1, f"{name}_scales", FLOAT, *HALVES)
        node.rank(index + 1, f"{name}_scales", 2 + self.is_blocked)
        self.shape = self.rows, self.columns // self.block
        node.check_sizes(index + 1, f"{name}_scales", {**sizes, 2: self.columns // self.block})
        if self.zeros is not None:
            node.dtype(11 + layer, f"{name}_zero_points", UINT8)

    def weights(self, expert: int) -> ir.Value:
        """The weights of an expert, `[N, K]` in float32. Codes, scales and zero points are constants if they can be."""
        codes = matrix(self.node, self.new, part(self.new, self.codes, expert), self.bits, (self.rows, self.columns))
        scales, zeros = self._scales(expert), self._zeros(expert, codes.dtype or UINT8)
        return self.new.op("DequantizeLinear", codes, scales, zeros, axis=1, block_size=self.block)

    def _scales(self, expert: int) -> ir.Value:
        array = constant_of(self.scales)
        if array is None:
            return self.new.reshape(self.new.upcast(part(self.new, self.scales, expert)), *self.shape)
        return self.new.constant(array[expert].reshape(self.shape).astype(np.float32))

    def _zeros(self, expert: int, kind: ir.DataType) -> ir.Value:
        """The zero points of an expert in the type of the codes. Without blocks, the rows share bytes."""
        new = self.new
        if self.zeros is None:
            return new.constant(np.full(self.shape, 1 << (self.bits - 1), kind.numpy()))
        given = part(new, self.zeros, expert)
        found = matrix(self.node, new, given, self.bits, self.shape if self.is_blocked else (1, self.rows))
        if not self.is_blocked:
            array = constant_of(found)
            found = new.reshape(found, *self.shape) if array is None else new.constant(array.reshape(self.shape))
        return new.cast(found, kind, found.dtype or UINT8)
