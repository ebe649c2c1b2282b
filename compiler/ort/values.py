"""Values with the interface of onnxruntime's `OrtValue`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.dtypes import name_of
from compiler.ort.arrays import check_fit, contiguous
from compiler.ort.elements import dtype_of, number_of, tensor_type
from compiler.ort.names import Partial

__all__ = ["OrtValue", "check_device_type"]

_DLPACK_CUDA = 2
"""The number of CUDA in DLPack."""


def check_device_type(device_type: str) -> None:
    """Check the name of a device.

    Raises:
        NotImplementedError: it is neither `cpu` nor `cuda`.
    """
    if device_type not in ("cpu", "cuda"):
        raise NotImplementedError(f"Unsupported device type: {device_type}; the types are cpu and cuda")


class OrtValue(Partial):
    """A value: an array, a tensor on a GPU, a list of arrays, or nothing.

    Only the class methods make values. A value shares the memory of the array or tensor from which it was made.
    """

    def __init__(self, value: Any, type_text: str) -> None:
        self._value, self._type = value, type_text

    @property
    def value(self) -> Any:
        """The value as an input of a session: an array, a tensor on a GPU, a list of arrays, or `None`."""
        return self._value

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray[Any, Any], /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor in the memory of an array. An array whose elements are not contiguous is copied.

        Raises:
            RuntimeError: it is no array, or its element type is not supported.
            NotImplementedError: the device is not the CPU.
        """
        _check_cpu("ortvalue_from_numpy", device_type)
        array = contiguous(numpy_obj)
        return cls(array, tensor_type(name_of(array)))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray[Any, Any], /, onnx_element_type: int) -> OrtValue:
        """Return a tensor in the memory of an array, with another type of the same width.

        Raises:
            RuntimeError: it is no array, or the widths differ.
            TypeError: the number is no type of numbers.
        """
        array, dtype = contiguous(data), dtype_of(onnx_element_type)
        if array.dtype.itemsize != dtype.itemsize:
            raise RuntimeError(f"an element of {array.dtype} has another width than one of {dtype}")
        return cls(array.view(dtype), tensor_type(dtype.name))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: None = None,
    ) -> OrtValue:
        """A tensor whose elements are not set.

        Raises:
            TypeError, ValueError: the type is no type of numbers, or a size is negative.
            NotImplementedError: the device is not the CPU, or there is a `memory_info`.
        """
        _check_cpu("ortvalue_from_shape_and_type", device_type)
        if memory_info is not None:
            raise NotImplementedError("ortvalue_from_shape_and_type: memory_info is not supported: leave it out")
        dtype = dtype_of(element_type)
        return cls(np.empty(tuple(shape), dtype), tensor_type(dtype.name))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor in the memory of another library's tensor, on the CPU or a GPU.

        Raises:
            TypeError: the object does not support DLPack.
            RuntimeError: its elements are not contiguous, or NumPy does not know their type.
        """
        if not (hasattr(data, "__dlpack__") and hasattr(data, "__dlpack_device__")):
            raise TypeError(f"from_dlpack: expected an object that supports DLPack, found {type(data).__name__}")
        if data.__dlpack_device__()[0] == _DLPACK_CUDA:
            return cls(data, tensor_type(_dtype_name(data)))
        try:
            array = np.from_dlpack(data)
        except (BufferError, RuntimeError, TypeError) as error:
            advice = "pass the tensor itself as an input of InferenceSession.run"
            raise RuntimeError(f"from_dlpack: NumPy does not take this tensor ({error}): {advice}") from None
        if not array.flags.c_contiguous:
            raise RuntimeError("from_dlpack: the elements of the tensor are not contiguous: copy it first")
        return cls(array, tensor_type(name_of(array)))

    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return not (self._value is None or isinstance(self._value, list))

    def is_tensor_sequence(self) -> bool:
        """Whether the value is a list of tensors."""
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        """Always `False`: plans have no sparse tensors."""
        return False

    def has_value(self) -> bool:
        """Whether there is a value: an optional may be empty."""
        return self._value is not None

    def data_type(self) -> str:
        """The text of the type, such as `tensor(int64)`."""
        return self._type

    def element_type(self) -> int:
        """The number of the element type in `onnx.TensorProto.DataType`. Raises RuntimeError unless it is a tensor."""
        return number_of(_dtype_name(self._tensor()))

    def shape(self) -> list[int]:
        """The shape. Raises RuntimeError unless the value is a tensor."""
        return list(self._tensor().shape)

    def tensor_size_in_bytes(self) -> int:
        """The number of bytes. Raises RuntimeError unless the value is a tensor."""
        return math.prod(self.shape()) * dtype_of(_dtype_name(self._tensor())).itemsize

    def device_name(self) -> str:
        """`cpu` or `cuda`."""
        return "cpu" if self._value is None or isinstance(self._value, np.ndarray | list) else "cuda"

    def data_ptr(self) -> int:
        """The address of the first element. Raises RuntimeError unless the value is a tensor."""
        tensor = self._tensor()
        if isinstance(tensor, np.ndarray):
            return int(tensor.ctypes.data)
        return int(tensor.__cuda_array_interface__["data"][0])

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array itself, or a copy of a tensor on a GPU. Raises RuntimeError unless the value is a tensor."""
        tensor = self._tensor()
        if not isinstance(tensor, np.ndarray):
            tensor = (tensor.cpu() if hasattr(tensor, "cpu") else tensor).numpy()  # of PyTorch, or of the runtime
        found: np.ndarray[Any, Any] = tensor
        return found

    def update_inplace(self, data: np.ndarray[Any, Any] | OrtValue) -> None:
        """Copy elements into the tensor.

        Raises:
            TypeError: the data are neither an array nor an `OrtValue`.
            RuntimeError: this is no tensor on the CPU, or the dtype or shape differs.
        """
        if not isinstance(data, np.ndarray | OrtValue):
            raise TypeError(f"update_inplace: expected a NumPy array or an OrtValue, found {type(data).__name__}")
        array = data.numpy() if isinstance(data, OrtValue) else data
        if self.device_name() != "cpu":
            raise RuntimeError(
                "update_inplace: the tensor is on a GPU: write to it with the library that it comes from"
            )
        own = self.numpy()
        check_fit(own, array, "update_inplace")
        own[...] = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = self.numpy()
        if copy:
            return np.array(found, dtype=dtype, copy=True)
        return np.asarray(found, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._tensor().__dlpack_device__()
        return int(kind), int(number)

    def _tensor(self) -> Any:
        if not self.is_tensor():
            raise RuntimeError(f"expected a tensor, found {'a sequence' if self._value is not None else 'nothing'}")
        return self._value


def _check_cpu(method: str, device_type: str) -> None:
    check_device_type(device_type)
    if device_type != "cpu":
        advice = "make the tensor with PyTorch or CuPy, and use OrtValue.from_dlpack"
        raise NotImplementedError(f"OrtValue.{method} has no device {device_type!r}: {advice}")


def _dtype_name(tensor: Any) -> str:
    """The logical type of an array or of another library's tensor."""
    return "string" if tensor.dtype == object else str(tensor.dtype).rpartition(".")[2]
