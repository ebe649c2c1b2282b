"""Element types and inputs as onnxruntime describes them."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.dtypes import NAMES, numpy_dtype
from compiler.plan import TensorInfo

__all__ = ["NodeArg", "dtype_of", "node_args", "number_of", "symbols_of", "tensor_type"]

_FIRST = ("float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64")
_MORE = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "uint4", "int4", "float4_e2m1fn")
_NUMBERS = {
    **{name: number for number, name in enumerate((*_FIRST, "uint32", "uint64"), 1)},
    **{name: number for number, name in enumerate(("bfloat16", *_MORE, "float8_e8m0fnu", "uint2", "int2"), 16)},
}
"""The number of each logical type in `onnx.TensorProto.DataType`."""

_TEXTS = {"float32": "float", "float64": "double", "float4_e2m1fn": "float4e2m1", "float8_e8m0fnu": "float8e8m0"}
"""The logical types whose texts are not their names without `_`."""

_UNNAMED = re.compile(r"_d[0-9]+")
"""The symbols that shape inference makes for dimensions without a name."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a session.

    `type` is a text such as `tensor(float)`, `seq(tensor(int64))` or `optional(tensor(float))`. `shape` has a number, a
    name or `None` for each dimension. It is empty for a scalar, for an unknown rank and for a sequence.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


def node_args(infos: Sequence[TensorInfo], names: set[str], declared: dict[str, Sequence[Any]]) -> list[NodeArg]:
    """The inputs or outputs. `names` are the symbols of the inputs, and `declared` holds the model's own shapes."""

    def dim(found: int | str | None, own: Any) -> int | str | None:
        if isinstance(found, int) or own is None:
            return found if isinstance(found, int) or found in names else None
        return own  # type: ignore[no-any-return]  # a number or a name

    def arg(info: TensorInfo) -> NodeArg:
        own = () if _holds_sequence(info) else declared.get(info.name, ())
        shape = [None] * len(own) if info.shape is None else info.shape
        dims = zip(shape, own if len(own) == len(shape) else [None] * len(shape), strict=True)
        return NodeArg(info.name, _type_text(info), [dim(*each) for each in dims])

    return [arg(info) for info in infos]


def symbols_of(infos: Sequence[TensorInfo]) -> set[str]:
    """The names of dimensions of the inputs."""
    dims = (dim for info in infos for dim in info.shape or ())
    return {dim for dim in dims if isinstance(dim, str) and not _UNNAMED.fullmatch(dim)}


def tensor_type(dtype: str) -> str:
    """The text of a tensor type: `tensor(float)` for `float32`."""
    return f"tensor({_TEXTS.get(dtype, dtype.replace('_', ''))})"


def _type_text(info: TensorInfo) -> str:
    text = tensor_type(info.dtype)
    if _holds_sequence(info):
        text = f"seq({text})"
    return f"optional({text})" if info.kind == "optional" else text


def _holds_sequence(info: TensorInfo) -> bool:
    return "sequence" in (info.kind, info.holds)


def number_of(dtype: str) -> int:
    """The number of a logical type in `onnx.TensorProto.DataType`."""
    return _NUMBERS[dtype]


def dtype_of(element_type: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a NumPy type, its name, or a number of `onnx.TensorProto.DataType`.

    Raises:
        TypeError: it is no type of numbers that plans have.
    """
    if isinstance(element_type, int | np.integer):
        number = operator.index(element_type)
        name = next((name for name, each in _NUMBERS.items() if each == number), "")
    else:
        name = np.dtype(element_type).name
    if name not in NAMES:
        raise TypeError(f"element_type: expected a type of numbers, found {element_type!r}")
    return numpy_dtype(name)
