"""Outputs of runs as tensors of other libraries than NumPy, in the same memory."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

__all__ = ["Library", "converted", "validate_library"]

Library = Literal["numpy", "torch"]
"""A library whose tensors are outputs of a run."""

_OF_BITS = ("bfloat16", "float8_")
"""The first parts of the names of dtypes that PyTorch has and NumPy lacks."""
_BITS = {1: np.uint8, 2: np.int16}
"""The integers of the same width."""


def validate_library(library: str) -> None:
    """Check the name of a library.

    Raises:
        ValueError: it is no known library.
    """
    if library not in get_args(Library):
        raise ValueError(f"as_: expected {' or '.join(map(repr, get_args(Library)))}, found {library!r}")


def converted(outputs: dict[str, Any], library: Library) -> dict[str, Any]:
    """The outputs as tensors of a library, which share the memory. NumPy arrays of strings stay as they are.

    Raises:
        TypeError: the library has no dtype of an output.
    """
    if library == "numpy":
        return outputs
    return {name: _to_torch(name, value) for name, value in outputs.items()}


def _to_torch(name: str, value: Any) -> Any:
    """A value of an output as a tensor of PyTorch, a list of tensors, or `None`."""
    import torch

    if isinstance(value, list):
        return [_to_torch(name, each) for each in value]
    if value is None or (isinstance(value, np.ndarray) and value.dtype == object):
        return value
    if not isinstance(value, np.ndarray):  # on a device
        return torch.from_dlpack(value)
    if value.dtype.isbuiltin == 1:
        return torch.from_numpy(value)
    dtype = getattr(torch, value.dtype.name, None) if value.dtype.name.startswith(_OF_BITS) else None
    if dtype is None:
        raise TypeError(f"output {name}: PyTorch has no {value.dtype.name}: leave out as_")
    return torch.from_numpy(value.view(_BITS[value.dtype.itemsize])).view(dtype)
