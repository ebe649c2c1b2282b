"""A line of the tables: a PyTorch layer, its inputs, and the expected result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

Exporter = Literal["dynamo", "torchscript"]
"""The two exporters: `torch.onnx.export(dynamo=True)` and `torch.onnx.export(dynamo=False)`."""
EXPORTERS: tuple[Exporter, ...] = ("dynamo", "torchscript")
Dims = Mapping[int, str]
"""The axes of an input whose sizes vary, with the names of the sizes."""


@dataclass(frozen=True)
class Layer:
    """A line of a table."""

    name: str
    build: Callable[[], nn.Module]
    inputs: tuple[Any, ...]
    dynamic: tuple[Dims, ...] = ()
    """One entry for each input; empty for static shapes."""
    again: tuple[Any, ...] = ()
    """Inputs of other sizes, run by the same plan."""
    opset: int | None = None
    """The opset to export for, instead of the exporter's own default."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """More options of `torch.onnx.export`."""
    tolerance: float = 1e-5
    """The largest allowed difference, relative to the output's largest element. If it is larger, a comment says why."""
    steps: Sequence[str] | None = None
    """The expected ops of the optimized plan, in order; empty if the line does not test them."""
    refused: Mapping[Exporter, str] = field(default_factory=dict)
    """The codes that the layer is refused with."""
    unexportable: Mapping[Exporter, str] = field(default_factory=dict)
    """The exporters that cannot export the layer, and why."""
    ours: Literal["", "translation", "torchscript"] = ""
    """How `compiler.export` exports a layer that the dynamo exporter refuses or misexports; empty if it does too."""
    misexported: Mapping[Exporter, str] = field(default_factory=dict)
    """Exporter → the function that it writes instead of PyTorch's. The expected results are then onnxruntime's."""
    note: str = ""
    """A remark for the page."""


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def layer(name: str, build: Callable[[], nn.Module], *inputs: Any, **rest: Any) -> Layer:
    """A line for a module, which `build` makes, with the fields of `Layer`."""
    return Layer(name, build, inputs, **rest)


def function(name: str, call: Callable[..., Any], *inputs: Any, **rest: Any) -> Layer:
    """A line for a function of tensors."""
    return Layer(name, lambda: Function(call), inputs, **rest)


def translates_no(exporter: Exporter, operator: str) -> dict[Exporter, str]:
    """The exporter fails because it does not translate an operator."""
    return {exporter: f"it does not translate {operator}"}


def f32(*shape: int) -> torch.Tensor:
    """Normally distributed numbers."""
    return torch.randn(shape, generator=_seeded(shape))


def f64(*shape: int) -> torch.Tensor:
    """Normally distributed numbers in double precision."""
    return f32(*shape).double()


def f16(*shape: int) -> torch.Tensor:
    """Normally distributed numbers in half precision."""
    return f32(*shape).half()


def positive(*shape: int) -> torch.Tensor:
    """Numbers from 0.1 to 2."""
    return torch.rand(shape, generator=_seeded(shape)) * 1.9 + 0.1


def ints(*shape: int, below: int = 10) -> torch.Tensor:
    """Integers from 0 to `below - 1`."""
    return torch.randint(0, below, shape, generator=_seeded(shape))


def bools(*shape: int) -> torch.Tensor:
    """Random booleans, true in half of the cases."""
    return f32(*shape) > 0


def _seeded(shape: Sequence[int]) -> torch.Generator:
    """A generator whose seed depends on the shape, so that two inputs of a line differ if their shapes do."""
    return torch.Generator().manual_seed(hash(tuple(shape)) & 0xFFFF)
