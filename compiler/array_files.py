"""Files of arrays: all inputs or outputs in an `.npz` or `.safetensors` file, or one in an `.npy` file.

The items of a sequence are the arrays `NAME.0`, `NAME.1` and so on. Empty sequences and optionals are not in the file.
If NumPy lacks a dtype, an `.npz` file stores the array as records with one field. The field has the dtype's name and
holds the bits: `arrays["y"]["bfloat16"].view(ml_dtypes.bfloat16)`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from compiler.errors import Error
from compiler.ir import dtypes

if TYPE_CHECKING:
    from compiler.plan import TensorInfo

__all__ = ["SAFETENSORS_DTYPES", "SUFFIXES", "from_saved", "gather", "pack", "read", "unpack"]

Array = np.ndarray[Any, Any]

SUFFIXES = (".npz", ".safetensors")
"""The suffixes of files that hold several arrays."""

_IN_SAFETENSORS = {**dtypes.SAFETENSORS_TYPES, "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
SAFETENSORS_DTYPES = {stored: name for name, stored in _IN_SAFETENSORS.items()}
"""The type of a tensor in a safetensors file → its dtype."""


def pack(values: Mapping[str, Any], path: Path) -> bytes:
    """The bytes of a file with these outputs. The path's suffix chooses the format.

    Raises:
        Error: the format cannot hold one of the outputs.
    """
    arrays = _flat(values)
    return _npz(arrays) if path.suffix == ".npz" else _safetensors(arrays)


def read(path: Path) -> Any:
    """The array of an `.npy` file, or the arrays of another file by name.

    Raises:
        Error: the file has another format.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return _read(file, path)


def unpack(data: bytes, path: Path) -> Any:
    """The arrays of `read`, from the bytes of a file with this name.

    Raises:
        Error: the bytes have another format.
    """
    return _read(io.BytesIO(data), path)


def _read(file: IO[bytes], path: Path) -> Any:
    reader = {".npy": _read_npy, ".npz": _read_npz, ".safetensors": _read_safetensors}[path.suffix]
    try:
        return reader(file)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # each format has its own exceptions, and broken files raise many others
        raise Error(f"cannot read {path}: {error}") from error


def gather(arrays: Mapping[str, Array], declared: Sequence[TensorInfo]) -> dict[str, Any]:
    """The arrays by name. The items of a declared sequence become one list."""
    left = dict(arrays)
    names = {info.name for info in declared}
    inputs: dict[str, Any] = {}
    for info in declared:
        if info.kind == "tensor" or info.name in left:
            continue
        items: list[Array] = []
        while (key := f"{info.name}.{len(items)}") in left and key not in names:
            items.append(left.pop(key))
        if items or info.kind == "sequence":
            inputs[info.name] = items
    return left | inputs


def _flat(values: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a file for these values, by their names in the file."""
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        items = {f"{name}.{i}": each for i, each in enumerate(value)} if isinstance(value, list) else {name: value}
        for key, item in items.items():
            if key in arrays:
                raise Error(f"a file cannot hold these outputs: two of them would have the name {key!r}")
            if isinstance(item, np.ndarray):
                arrays[key] = item
            elif item is not None or isinstance(value, list):
                raise Error(f"a file cannot hold the output {name!r}: it is not a sequence of tensors")
    return arrays


def _npz(arrays: Mapping[str, Array]) -> bytes:
    """The bytes of an `.npz` file. `numpy.savez` would take some names for its own arguments."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            if info.filename != f"{name}.npy":
                raise Error(f"an .npz file cannot hold an output with the name {name!r}: write a .safetensors file")
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _as_saved(name, array), allow_pickle=False)
    return buffer.getvalue()


def _as_saved(name: str, array: Array) -> Array:
    """The array with a dtype that NumPy can save: fixed-width text for strings, records for dtypes of `ml_dtypes`."""
    if array.dtype == object:
        text = array.astype(str)
        if not np.array_equal(text.astype(object), array):
            raise Error(f"a file cannot hold the output {name!r}: one of its strings ends with a null character")
        return text
    if array.dtype.isbuiltin == 1:
        return array
    bits = dtypes.to_stored(array)
    return bits.view(np.dtype([(array.dtype.name, bits.dtype)]))


def from_saved(array: Array) -> Array:
    """The array that `pack` stored as this one in an `.npz` file.

    Raises:
        ValueError: its dtype names no type of elements.
    """
    if array.dtype.kind in "SU":
        return array.astype(str).astype(object)
    if array.dtype.kind != "V":
        return array
    (name,) = array.dtype.names if array.dtype.names and len(array.dtype.names) == 1 else ("",)
    if name not in dtypes.NAMES or array.dtype.itemsize != dtypes.numpy_dtype(name).itemsize:
        advice = 'save bfloat16 as array.view([("bfloat16", "<u2")])'
        raise ValueError(f"the dtype {array.dtype} does not name the type of its elements: {advice}")
    return dtypes.from_stored(name, array[name])


def _safetensors(arrays: Mapping[str, Array]) -> bytes:
    from safetensors.numpy import save

    for name, array in arrays.items():
        dtype = dtypes.name_of(array)
        if dtype not in _IN_SAFETENSORS or name == "__metadata__":
            what = "" if name == "__metadata__" else f" of {dtype}"
            raise Error(f"a .safetensors file cannot hold the output {name!r}{what}: write an .npz file")
    return save({name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()})


def _read_npy(file: IO[bytes]) -> Array:
    magic = np.lib.format.MAGIC_PREFIX
    if (start := file.read(len(magic))) != magic:
        raise ValueError("it is empty" if not start else "it is not an .npy file: write it with numpy.save")
    file.seek(0)
    try:
        array = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        advice = "save numbers, or text as array.astype(str)"
        raise ValueError(f"an array has the dtype object, which a file holds as Python code: {advice}") from None
    return from_saved(array)


def _read_npz(file: IO[bytes]) -> dict[str, Array]:
    with zipfile.ZipFile(file) as archive:
        return {name.removesuffix(".npy"): _read_npy(archive.open(name)) for name in archive.namelist()}


def _read_safetensors(file: IO[bytes]) -> dict[str, Array]:
    from safetensors import deserialize

    arrays = {}
    for name, tensor in deserialize(file.read()):  # type: ignore[no-untyped-call]
        if tensor["dtype"] not in SAFETENSORS_DTYPES:
            raise ValueError(f"{name!r} has the dtype {tensor['dtype']}, which no input can have")
        dtype = dtypes.numpy_dtype(SAFETENSORS_DTYPES[tensor["dtype"]])
        arrays[name] = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    return arrays
