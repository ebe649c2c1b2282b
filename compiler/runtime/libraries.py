"""Outputs of runs as tensors of other libraries than NumPy, in the same memory."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from compiler.runtime.host_tensor import host_tensor
from compiler.validate import validate_mapping

__all__ = [
    "Library",
    "converted",
    "delivered",
    "fill",
    "readable",
    "to_torch",
    "validate_library",
    "validate_places",
]

Library = Literal["numpy", "torch", "dlpack"]
"""A library whose tensors are outputs of a run; "dlpack" stands for tensors that every library with DLPack reads."""

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
        raise ValueError(f"as_: expected {', '.join(map(repr, get_args(Library)))}, found {library!r}")


def converted(outputs: dict[str, Any], library: Library) -> dict[str, Any]:
    """The outputs as tensors of a library, which share the memory. NumPy arrays of strings stay as they are.

    Raises:
        TypeError: the library cannot compute with the dtype of an output.
    """
    if library == "numpy":
        return outputs
    if library == "dlpack":
        return {name: host_tensor(f"output {name}", value) for name, value in outputs.items()}
    return {name: to_torch(f"output {name}", value) for name, value in outputs.items()}


def delivered(outputs: dict[str, Any], library: Library, out: Mapping[str, Any] | None) -> dict[str, Any]:
    """The outputs of a run as tensors of a library. Copies the outputs that `out` names into its arrays.

    Raises:
        TypeError, ValueError: as `converted` and `fill`.
    """
    found = converted(outputs, library)
    if out is None:
        return found
    fill(out, outputs)
    return {**found, **out}


def readable(value: Any) -> Any:
    """A tensor of PyTorch as one that NumPy reads: without its gradient, and bfloat16 as an array of that dtype."""
    if not _is_torch(value):
        return value
    tensor = value.detach()
    if str(tensor.dtype) != "torch.bfloat16":
        return tensor
    import ml_dtypes
    import torch

    return tensor.cpu().view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def to_torch(what: str, value: Any) -> Any:
    """A value of a run as a tensor of PyTorch, a list of tensors, or `None`. `what` is its name in errors.

    Raises:
        TypeError: PyTorch has no operators for the dtype.
    """
    import torch

    if isinstance(value, list):
        return [to_torch(what, each) for each in value]
    if value is None or (isinstance(value, np.ndarray) and value.dtype == object):
        return value
    if not isinstance(value, np.ndarray):  # on a device
        return torch.from_dlpack(value)
    if value.dtype.isbuiltin == 1:
        tensor = torch.from_numpy(value)
        return tensor if value.size else tensor.new_empty(tensor.shape)  # with PyTorch's strides
    dtype = getattr(torch, value.dtype.name, None) if value.dtype.name.startswith(_OF_BITS) else None
    if dtype is None:
        raise TypeError(f"{what}: elements of {value.dtype.name} come only as a NumPy array: leave out as_")
    return torch.from_numpy(value.view(_BITS[value.dtype.itemsize])).view(dtype)


def validate_places(places: Mapping[str, Any], names: Iterable[str]) -> None:
    """Check the arrays that a run writes outputs into; `names` are the names of its outputs.

    Raises:
        TypeError: `places` is no dict, or an array is neither a NumPy array nor a PyTorch tensor on the CPU.
        ValueError: the run has no output of such a name, an array is read-only, or two of them share memory.
    """
    known = set(names)
    validate_mapping("out", places, "a dict of arrays by name")
    for name, place in places.items():
        if name not in known:
            raise ValueError(f"out: expected some of {', '.join(sorted(known))}, found {name!r}")
        if isinstance(place, np.ndarray):
            if not place.flags.writeable:
                raise ValueError(f"out: the array of {name!r} is read-only")
        elif not _is_torch(place) or place.device.type != "cpu" or place.requires_grad:
            kind = "a PyTorch tensor on the CPU that needs no gradient"
            raise TypeError(f"out: {name!r}: expected a NumPy array or {kind}, found {type(place).__name__}")
    for (one, first), (other, second) in itertools.combinations(places.items(), 2):
        if np.shares_memory(_memory(first), _memory(second)):
            raise ValueError(f"out: the arrays of {one!r} and {other!r} share memory: give each output its own")


class _Memory:
    """The memory of a tensor of PyTorch, for NumPy, which lacks some of the dtypes."""

    def __init__(self, tensor: Any) -> None:
        size = tensor.element_size()
        strides = tuple(stride * size for stride in tensor.stride())
        data = {"data": (tensor.data_ptr(), False), "shape": tuple(tensor.shape), "strides": strides}
        self.__array_interface__ = {**data, "typestr": f"|V{size}", "version": 3}


def _memory(place: Any) -> np.ndarray:
    return np.asarray(_Memory(place)) if _is_torch(place) else place


def fill(places: Mapping[str, Any], outputs: dict[str, Any]) -> None:
    """Copy outputs, which are NumPy arrays, into their places, which have passed `validate_places`.

    Raises:
        TypeError: the dtype of an output differs from that of its place, or the output is no tensor on the host.
        ValueError: the shape differs. Nothing is written if there is an error.
    """
    values = {}
    for name, place in places.items():
        value = values[name] = to_torch(f"output {name}", outputs[name]) if _is_torch(place) else outputs[name]
        if not isinstance(value, np.ndarray) and not (_is_torch(value) and value.device.type == "cpu"):
            raise TypeError(f"out: output {name!r} is no tensor on the host")
        if value.dtype != place.dtype:
            raise TypeError(f"out: output {name!r} has dtype {value.dtype}, but its array has {place.dtype}")
        if tuple(value.shape) != tuple(place.shape):
            raise ValueError(
                f"out: output {name!r} has shape {list(value.shape)}, but its array has {list(place.shape)}"
            )
    for name, place in places.items():
        if isinstance(place, np.ndarray):
            place[...] = values[name]
        else:
            place.copy_(values[name])


def _is_torch(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
