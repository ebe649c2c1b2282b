"""Sentences for wrong uses of a run that the runtime does not explain. Only runs that fail look for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from compiler.errors import InputError
from compiler.plan import TensorInfo
from compiler.validate import validate_instance

__all__ = ["refuse_wrong_use", "validate_run"]

_PACKED = re.compile(r"torch\.(u?int[1-7]|float4_.*)")
"""The names of PyTorch's dtypes of less than 8 bits. PyTorch has no operators for them."""


def validate_run(module: Any, device_outputs: Any, copy: Any, cancel: Any) -> None:
    """Check these arguments of a run. `module` is the extension of the session.

    Raises:
        TypeError: an argument has a wrong type.
    """
    for name, value in (("device_outputs", device_outputs), ("copy", copy)):
        validate_instance(name, value, (bool, np.bool_), "True or False")
    if cancel is not None:
        validate_instance("cancel", cancel, module.Cancel, "an object that new_cancel() of the session returned")


def refuse_wrong_use(module: Any, inputs: Any, declared: Iterable[TensorInfo], *flags: Any) -> None:
    """Explain why a run failed, if an argument or a tensor of PyTorch is the reason. `flags` as in `validate_run`.

    Raises:
        TypeError: an argument has a wrong type.
        InputError: no runtime can read the elements of a tensor.
    """
    try:
        validate_run(module, *flags)
    except TypeError as error:
        raise error from None
    for info in declared if isinstance(inputs, Mapping) else ():
        for tensor in _tensors(inputs.get(info.name)):
            found = _unreadable(tensor)
            if found:
                message = f"input {info.name!r}: expected {info}, found {found}"
                raise InputError(info.name, str(info), found, message) from None


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors of PyTorch in an input. PyTorch need not be installed."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def _unreadable(tensor: Any) -> str:
    """The description of a tensor that no runtime can read, with advice; empty for a readable tensor."""
    if tensor.is_nested:
        return "a nested tensor of PyTorch: pass a tensor with one shape, as to_padded_tensor(0.0) makes it"
    if tensor.device.type == "meta":
        return 'a tensor on PyTorch\'s device "meta", which has no elements: pass a tensor with elements'
    if _PACKED.fullmatch(str(tensor.dtype)):
        return (
            f"a tensor of {tensor.dtype}, for which PyTorch has no operators: pass an array with a dtype of ml_dtypes"
        )
    if str(tensor.layout) != "torch.strided":
        return f"a tensor with the layout {tensor.layout}: pass tensor.to_dense()"
    if tensor.is_conj():
        return "a tensor that PyTorch has yet to conjugate: pass tensor.resolve_conj()"
    if tensor.is_quantized:
        return "a quantized tensor of PyTorch: pass tensor.dequantize(), or the codes (tensor.int_repr())"
    if tensor.requires_grad:
        return "a tensor that requires a gradient, which a run does not compute: pass tensor.detach()"
    return ""
