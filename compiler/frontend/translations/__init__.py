"""ONNX functions for operators that PyTorch's exporter does not translate, or translates wrongly, one file per family.

The exporter calls such a function with the arguments of an operator. A tensor is a symbolic value with a dtype and a
shape, and the opset records the nodes that the function makes. A value that a node has made has no dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compiler.frontend.translations import (
    attention,
    axes_of_one,
    distances,
    elementwise,
    experts,
    local_response,
    pooling,
    products,
    recurrent,
    reductions,
    searching,
    windows,
)

__all__ = ["NAMES", "translation_table"]

_FAMILIES = (
    *(attention, axes_of_one, distances, elementwise, experts, local_response, pooling, products, reductions),
    *(recurrent, searching, windows),
)

NAMES: Mapping[str, Callable[..., Any]] = {
    name: function for family in _FAMILIES for name, function in family.TRANSLATIONS.items()
}
"""Names of operators, such as `aten::median.dim` → their functions."""


def translation_table() -> dict[Any, Callable[..., Any]]:
    """Operator → its function, for `torch.onnx.export(custom_translation_table=…)`.

    The table lacks the operators of packages that are not imported, and those that this PyTorch lacks.
    """
    found = {_operator(name): function for name, function in NAMES.items()}
    return {operator: function for operator, function in found.items() if operator is not None}


def _operator(name: str) -> Any:
    """The overload of an operator; `None` if it does not exist."""
    import torch

    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload or "default", None)
