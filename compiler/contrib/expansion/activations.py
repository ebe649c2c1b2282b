"""The activation functions of recurrent operators, which LSTM, GRU and RNN of the standard share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import onnx_ir as ir

from compiler.attributes import Attributes
from compiler.contrib.expansion.body import FLOAT, Body

__all__ = ["Activation", "read_activations"]

_PARAMETERS: dict[str, tuple[float, ...]] = {
    "Affine": (1.0, 0.0),
    "Elu": (1.0,),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01,),
    "Relu": (),
    "ScaledTanh": (1.0, 1.0),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": (1.0,),
}
"""The activation functions, and the defaults of their α and β."""


class Activation(NamedTuple):
    """A function, and its α and β if it has them."""

    name: str
    values: Sequence[float]

    def apply(self, new: Body, value: ir.Value) -> ir.Value:
        """The function of a value of float32."""
        factors = [new.scalar(number, FLOAT) for number in self.values] if self.name in ("Affine", "ScaledTanh") else []
        if self.name == "Affine":
            return new.op("Add", new.op("Mul", value, factors[0]), factors[1])
        if self.name == "ScaledTanh":
            return new.op("Mul", new.op("Tanh", new.op("Mul", value, factors[1])), factors[0])
        attributes: dict[str, Any] = dict(zip(("alpha", "beta"), self.values, strict=False))
        result: ir.Value = new.op(self.name, value, **attributes)
        return result


def read_activations(node: Attributes, names: Sequence[str]) -> list[Activation]:
    """The functions with these names; each one with α or β takes the next one of the attributes."""
    alphas, betas = iter(node.floats("activation_alpha", [])), iter(node.floats("activation_beta", []))
    written = {name.lower(): name for name in _PARAMETERS}
    functions = []
    for given in names:
        name = written.get(given.lower())
        if name is None:
            node.refuse(
                "CC0202", f"{node.op_type} has no activation {given!r}", help=f"one of {', '.join(_PARAMETERS)}"
            )
        values = [next(source, default) for source, default in zip((alphas, betas), _PARAMETERS[name], strict=False)]
        if not all(map(math.isfinite, values)):
            node.refuse("CC0202", f"activation {name} has the parameters {values}, which are not finite")
        functions.append(Activation(name, values))
    return functions
