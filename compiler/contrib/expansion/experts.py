"""What mixtures of experts have in common: the choice of experts, their activations, and the sum of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from compiler.contrib.expansion.body import END, FLOAT, HALVES, INT64, Body
from compiler.contrib.expansion.node import Node
from compiler.ir.graph import constant_of

__all__ = ["Layer", "Mixture", "part"]

_ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")


def part(new: Body, value: ir.Value, expert: int) -> ir.Value:
    """An expert's part of a value whose first axis are the experts."""
    array = constant_of(value)
    if array is not None and array.ndim and expert < len(array):
        return new.constant(array[expert])
    found: ir.Value = new.op("Gather", value, new.scalar(expert, INT64), axis=0)
    found.type = value.type
    return found


@dataclass(frozen=True)
class Layer:
    """A linear layer of each expert."""

    weights: Callable[[int], ir.Value]
    """An expert → its weights `[N, K]` in float32."""
    bias: ir.Value | None
    """`[experts, N]`."""

    def apply(self, new: Body, expert: int, x: ir.Value) -> ir.Value:
        """The expert's layer of tokens: `[n, K]` → `[n, N]`."""
        product = new.op("MatMul", x, new.transpose(self.weights(expert), 1, 0))
        return new.total(product, self.bias and new.upcast(part(new, self.bias, expert)))


@dataclass(frozen=True)
class _Activation:
    """The function between the two layers of an expert."""

    kind: str
    alpha: float
    beta: float
    limit: float
    fusion: int
    """How `swiglu` finds its two halves: results of two layers (0), or every other column (1) or half (2) of one."""

    @classmethod
    def read(cls, node: Node) -> _Activation:
        kind = node.string("activation_type", "relu")
        if kind not in _ACTIVATIONS:
            expected = ", ".join(_ACTIVATIONS)
            node.refuse("CC0202", f"{node.op_type} has no activation_type {kind!r}", help=f"one of {expected}")
        alpha, beta = node.float("activation_alpha", 1.0), node.float("activation_beta", 0.0)
        return cls(kind, alpha, beta, node.float("swiglu_limit", float("inf")), node.choice("swiglu_fusion", 0, 1, 2))

    @property
    def is_gated(self) -> bool:
        return self.kind == "swiglu"

    @property
    def layers(self) -> int:
        """The number of layers of an expert."""
        return 3 if self.is_gated and self.fusion == 0 else 2

    def apply(self, new: Body, x: ir.Value, width: int, other: ir.Value | None) -> ir.Value:
        """The function of the results of the first layer and, if there is one, of the third layer."""
        if self.kind == "identity":
            return x
        if not self.is_gated:
            if self.kind == "gelu":
                return new.op("Gelu", x, approximate="tanh")
            return new.op("Relu" if self.kind == "relu" else "Swish", x)
        if other is not None:
            return self._product(new, x, other)
        if self.fusion == 2:
            return self._product(new, new.slice(x, 1, 0, width), new.slice(x, 1, width, END))
        gate, linear = (
            new.op("Slice", x, new.numbers(start), new.numbers(END), new.numbers(1), new.numbers(2)) for start in (0, 1)
        )
        return self._product(new, gate, linear)

    def _product(self, new: Body, gate: ir.Value, linear: ir.Value) -> ir.Value:
        """`swish(min(gate, limit)) · (clip(linear, ±limit) + beta)`."""
        if self.limit != float("inf"):
            most = new.scalar(self.limit, FLOAT)
            gate = new.op("Min", gate, most)
            linear = new.op("Clip", linear, new.scalar(-self.limit, FLOAT), most)
        if self.beta:
            linear = new.op("Add", linear, new.scalar(self.beta, FLOAT))
        return new.op("Mul", new.op("Swish", gate, alpha=self.alpha), linear)


@dataclass(frozen=True)
class Mixture:
    """The experts of a node, and the choice of `k` of them for each token."""

    node: Node
    new: Body
    activation: _Activation
    experts: int
    k: int
    hidden: int
    """The size of a token."""
    inter: int
    """The size of the input of the second layer."""
    scores: ir.Value
    """The scores of the experts for each token, `[tokens, experts]` in float32."""
    best: ir.Value
    """The `k` highest scores of each token, `[tokens, k]`."""
    chosen: ir.Value
    """The experts with these scores, `[tokens, k]`."""

    @classmethod
    def read(cls, node: Node, new: Body, inter: int) -> Mixture:
        """Reads the tokens, the scores, and the attributes that do not depend on the type of the weights."""
        node.dtype(0, "input", FLOAT, *HALVES)
        node.rank(0, "input", 2, 3)
        node.rank(1, "router_probs", 2)
        node.choice("use_sparse_mixer", 0)  # onnxruntime's CPU provider ignores it, but its GPU providers do not
        node.choice("swiglu_limit_after_activation", 0)
        experts, k, activation = node.size(1, "router_probs", 1), node.int("k", 1), _Activation.read(node)
        if not 1 <= k <= experts:
            node.refuse("CC0202", f"{node.op_type}'s attribute k is {k}, but there are {experts} experts")
        scores = new.upcast(node.input(1))
        best, chosen = new.op("TopK", scores, new.numbers(k), axis=1, outputs=2)
        hidden = node.size(0, "input", -1)
        return cls(node, new, activation, experts, k, hidden, inter, scores, best, chosen)

    def shapes(self) -> list[tuple[int, int]]:
        """The shapes `(N, K)` of the weights of each layer of an expert."""
        first = self.inter * (1 + (self.activation.is_gated and self.activation.fusion > 0))
        return [(first, self.hidden), (self.hidden, self.inter), (self.inter, self.hidden)][: self.activation.layers]

    def bias(self, index: int, layer: int) -> ir.Value | None:
        """The bias of a layer, which is input `index` if it is given."""
        value = self.node.optional(index)
        if value is not None:
            sizes = dict(enumerate((self.experts, self.shapes()[layer][0])))
            self.node.check_sizes(index, f"fc{layer + 1}_experts_bias", sizes)
        return value

    def of_chosen(self, values: ir.Value, *, normalize: bool) -> ir.Value:
        """The values `[tokens, experts]` of the chosen experts, divided by their sum if asked."""
        found = self.new.op("GatherElements", values, self.chosen, axis=1)
        return self.new.op("Div", found, self.new.op("ReduceSum", found, self.new.numbers(1))) if normalize else found

    def result(self, layers: Sequence[Layer], factors: ir.Value) -> ir.Value:
        """The sum of the results of each token's experts times `factors` `[tokens, k]`.

        The pairs of a token and an expert are sorted by experts, so that each expert computes its tokens together.
        """
        new, node = self.new, self.node
        flat = new.reshape(self.chosen, -1)
        _, order = new.op("TopK", flat, new.op("Shape", flat), axis=0, largest=0, outputs=2)
        _, places = new.op("TopK", order, new.op("Shape", flat), axis=0, largest=0, outputs=2)
        ones = new.op("OneHot", flat, new.scalar(self.experts, INT64), new.numbers(0, 1))
        counts = new.op("ReduceSum", ones, new.numbers(0), keepdims=0)
        tokens = new.reshape(new.upcast(node.input(0)), -1, self.hidden)
        sorted_tokens = new.op("Gather", tokens, new.op("Div", order, new.numbers(self.k)), axis=0)
        parts = new.op("Split", sorted_tokens, counts, axis=0, outputs=self.experts)
        results = [self._expert(layers, expert, x) for expert, x in enumerate(parts)]
        sorted_results = new.op("Gather", new.joined(*results), places, axis=0)
        weighted = new.op("Mul", new.reshape(sorted_results, -1, self.k, self.hidden), new.unsqueeze(factors, 2))
        total = new.op("ReduceSum", weighted, new.numbers(1), keepdims=0)
        shaped = new.op("Reshape", total, new.op("Shape", node.input(0)))
        return new.cast(shaped, node.dtype(0, "input"), FLOAT)

    def _expert(self, layers: Sequence[Layer], expert: int, x: ir.Value) -> ir.Value:
        """The results of an expert for its tokens `[n, hidden]`."""
        other = layers[2].apply(self.new, expert, x) if len(layers) > 2 else None
        activated = self.activation.apply(self.new, layers[0].apply(self.new, expert, x), self.inter, other)
        return layers[1].apply(self.new, expert, activated)
