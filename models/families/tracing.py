"""Exports with PyTorch's older exporter, which traces a network (TorchScript). It wrote many published ONNX files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

__all__ = ["trace"]


class _Named(nn.Module):
    """A network that takes its tensors by position, and returns a tuple of tensors."""

    def __init__(self, network: nn.Module, names: list[str], constants: Mapping[str, Any]) -> None:
        super().__init__()
        self.network, self.names, self.constants = network, names, constants

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.network(**dict(zip(self.names, tensors, strict=True)), **self.constants)
        return tuple(leaf for leaf in _pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor))


def trace(
    network: nn.Module,
    tensors: Mapping[str, torch.Tensor],
    constants: Mapping[str, Any],
    path: Path,
    *,
    dynamic: Mapping[str, Mapping[int, str]],
    opset: int,
) -> None:
    """Export a network with these arguments of its `forward` to a file. `dynamic` names sizes that may vary, by axis.

    Raises:
        torch.onnx.errors.OnnxExporterError: the exporter does not translate an operator to this opset.
    """
    wrapped = _Named(network, [*tensors], constants)
    axes = {name: dict(names) for name, names in dynamic.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is deprecated, and tracing warns of each size in Python
        torch.onnx.export(
            wrapped, (*tensors.values(),), path, dynamo=False, input_names=[*tensors], dynamic_axes=axes,
            opset_version=opset,
        )  # fmt: skip
