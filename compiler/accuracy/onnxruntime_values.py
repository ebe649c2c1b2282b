"""Conversion between arrays and onnxruntime's values, which also have the dtypes that NumPy lacks.

onnxruntime converts most arrays itself. It cannot convert bfloat16 and types with fewer than 8 bits, and it reads 8-bit
floats as integers. This module copies the bits of these arrays.
"""

from __future__ import annotations

import ctypes
import math
import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["converted", "is_beyond_numpy", "to_array", "to_value"]

_NUMPY = frozenset(
    {"bool", "string", "float16", "float", "double"}
    | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
)
"""The element types that NumPy has, by their names in onnxruntime."""

_DTYPES = {
    16: ml_dtypes.bfloat16,
    17: ml_dtypes.float8_e4m3fn,
    18: ml_dtypes.float8_e4m3fnuz,
    19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e5m2fnuz,
    21: ml_dtypes.uint4,
    22: ml_dtypes.int4,
    23: ml_dtypes.float4_e2m1fn,
    24: ml_dtypes.float8_e8m0fnu,
    25: ml_dtypes.uint2,
    26: ml_dtypes.int2,
}
"""The number of a type in ONNX (`TensorProto.DataType`) → the dtype."""

_KINDS = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}

_BITS = {**dict.fromkeys(("uint4", "int4", "float4_e2m1fn"), 4), **dict.fromkeys(("uint2", "int2"), 2)}
"""The bits of an element. NumPy stores each element in a byte of its own, and onnxruntime packs them."""


def is_beyond_numpy(declared: str) -> bool:
    """Whether NumPy lacks the dtype of tensors of onnxruntime's type `tensor(bfloat16)`.

    onnxruntime runs no operator that puts such tensors into sequences.
    """
    return "seq(" not in declared and not _NUMPY.issuperset(re.findall(r"tensor\((\w+)\)", declared))


def converted(given: Any) -> Any:
    """The input of a run in a form that onnxruntime takes: an array of a dtype that NumPy lacks becomes a value."""
    return _value_of_bits(given) if isinstance(given, np.ndarray) and given.dtype in _KINDS else given


def to_value(given: Any, declared: str) -> Any:
    """The value of an input of onnxruntime's type `declared`: an array, or the list of a sequence."""
    import onnxruntime

    if isinstance(given, list | tuple) and "seq(" in declared:
        return _sequence([to_value(each, "") for each in given], _element_of(declared))
    array = np.asarray(given, order="C")
    if array.dtype in _KINDS:
        return _value_of_bits(array)
    return _strings(array) if array.dtype.kind in "OUST" else onnxruntime.OrtValue.ortvalue_from_numpy(array)


def to_array(value: Any) -> Any:
    """The array of an output, the list of a sequence, or `None` for an empty optional."""
    if not value.has_value():
        return None
    if value.is_tensor_sequence():
        return _elements(value)
    return _array_of_bits(value) if value.element_type() in _DTYPES else value.numpy()


def _value_of_bits(array: np.ndarray[Any, Any]) -> Any:
    import onnxruntime

    bits = _BITS.get(array.dtype.name)
    data = np.ascontiguousarray(array) if bits is None else _packed(array.view(np.uint8).ravel(), bits)
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(array.shape), _KINDS[array.dtype])
    if value.tensor_size_in_bytes() != data.nbytes:
        raise ValueError(f"onnxruntime stores {array.dtype.name} in another form")
    ctypes.memmove(value.data_ptr(), data.ctypes.data, data.nbytes)
    return value


def _array_of_bits(value: Any) -> np.ndarray[Any, Any]:
    dtype, shape, size = np.dtype(_DTYPES[value.element_type()]), value.shape(), value.tensor_size_in_bytes()
    data = np.empty(size, np.uint8)
    ctypes.memmove(data.ctypes.data, value.data_ptr(), size)
    if (bits := _BITS.get(dtype.name)) is not None:
        data = _unpacked(data, bits, is_signed=dtype.name.startswith("int"))[: math.prod(shape)]
    array: np.ndarray[Any, Any] = (data.astype(dtype) if "int" in dtype.name else data.view(dtype)).reshape(shape)
    return array


def _packed(elements: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """The low bits of elements, with the first one in the low bits of the first byte."""
    in_byte = 8 // bits
    codes = np.pad(elements & (2**bits - 1), (0, -elements.size % in_byte)).reshape(-1, in_byte)
    packed: np.ndarray[Any, Any] = np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1)
    return packed


def _unpacked(data: np.ndarray[Any, Any], bits: int, *, is_signed: bool) -> np.ndarray[Any, Any]:
    """The elements that bytes pack, each in a byte of its own. Unused bits of the last byte give more elements."""
    high = (data[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) << (8 - bits)).ravel()
    elements: np.ndarray[Any, Any] = (high.view(np.int8) if is_signed else high) >> (8 - bits)
    return elements


def _sequence(elements: Sequence[Any], element: str) -> Any:
    """The value of a sequence. Only an operator of onnxruntime can create it."""
    if not elements:
        kind = _number_of(element)
        return _computed(f"() => (seq({element}[]) y) {{ y = SequenceEmpty <dtype = {kind}> () }}", {})
    named = {f"x{i}": each for i, each in enumerate(elements)}
    inputs = ", ".join(f"{element}[] {name}" for name in named)
    return _computed(f"({inputs}) => (seq({element}[]) y) {{ y = SequenceConstruct ({', '.join(named)}) }}", named)


def _elements(value: Any) -> Any:
    """The arrays of a sequence, as a list."""
    element = _element_of(value.data_type())
    if element not in _NUMPY:
        return []  # see `is_beyond_numpy`
    kind = f"seq({element}[])"
    [elements] = _session(f"({kind} x) => ({kind} y) {{ y = Identity (x) }}").run(None, {"x": value})
    return elements


def _strings(array: np.ndarray[Any, Any]) -> Any:
    """The value of an array of strings. It is a constant of a model."""
    from onnx import numpy_helper

    text = f"() => (string{list(array.shape)} y) {{ }}"
    return _computed(text, {}, numpy_helper.from_array(array.astype(object), "y"))


def _computed(graph: str, inputs: dict[str, Any], *constants: Any) -> Any:
    """The output of a graph in ONNX's syntax."""
    [value] = _session(graph, *constants).run_with_ort_values(None, inputs)
    return value


def _session(graph: str, *constants: Any) -> Any:
    import onnx.parser
    import onnxruntime

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> conversion {graph}')
    model.graph.initializer.extend(constants)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _element_of(declared: str) -> str:
    """The element type of onnxruntime's type, such as `float` of `optional(seq(tensor(float)))`."""
    return str(re.findall(r"tensor\((\w+)\)", declared)[0])


def _number_of(element: str) -> int:
    import onnx

    return int(onnx.TensorProto.DataType.Value(element.upper()))
