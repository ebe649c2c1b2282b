"""Tensors on the host for every library that supports DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler import _runtime

__all__ = ["HostTensor", "host_tensor"]

_DEVICE = (1, 0)
"""The host in DLPack's numbering."""


class HostTensor:
    """A tensor on the host: an output of a run with `as_="dlpack"`.

    `from_dlpack` of a library makes a tensor in the same memory. The dtype may be one that NumPy's own arrays cannot
    pass on, such as bfloat16.
    """

    device = "cpu"

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self._array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, from NumPy or `ml_dtypes`."""
        dtype: np.dtype[Any] = self._array.dtype
        return dtype

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array in the same memory."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is None:  # NumPy 1 has no copy=None
            return np.asarray(self._array, dtype)
        return np.array(self._array, dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DEVICE

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule without a version, which every library reads."""
        if stream is not None or dl_device not in (None, _DEVICE) or copy:
            raise BufferError("the tensor lies on the CPU, and is not copied: call numpy().copy() for a copy")
        return _runtime.capsule(self._array)

    def __repr__(self) -> str:
        return f"HostTensor({self.dtype} {list(self.shape)})"


def host_tensor(what: str, value: Any) -> Any:
    """An output of a run, which is named in errors, as a tensor with `__dlpack__`. Strings and `None` stay as they are.

    Raises:
        TypeError: no capsule of DLPack has this dtype here.
    """
    if isinstance(value, list):
        return [host_tensor(what, each) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype == object:  # None, or a tensor on a device
        return value
    try:
        _runtime.capsule(value)
    except BufferError:
        raise TypeError(f"{what}: elements of {value.dtype} come only as a NumPy array: leave out as_") from None
    return HostTensor(value)
