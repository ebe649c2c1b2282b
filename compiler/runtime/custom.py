"""The functions of custom operators, as the runtime calls them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from compiler.custom import CustomOp, registered_ops
from compiler.runtime.libraries import readable, to_torch

__all__ = ["functions"]


def functions() -> dict[str, Callable[[list[Any], dict[str, Any]], list[Any]]] | None:
    """The functions of all registered operators by name; `None` if there are none."""
    return {op.name: partial(_called, op) for op in registered_ops()} or None


def _called(op: CustomOp, inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """The outputs of an operator, as arrays or other objects that NumPy converts to arrays."""
    if op.tensors == "torch":
        inputs = [to_torch(f"input {at}", value) for at, value in enumerate(inputs)]
        attributes = {
            name: to_torch(f"attribute {name}", value) if isinstance(value, np.ndarray) else value
            for name, value in attributes.items()
        }
    found = op.function(*inputs, **attributes)
    return [readable(value) for value in (found if isinstance(found, list | tuple) else [found])]
