"""Checks of weights in other files: each file is in the folder of the model's file, and is as long as the model says.

A model is not trusted: the compiler never opens a file elsewhere. The reader of the weights checks the folder again.
"""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import math
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
import onnx_ir as ir

from compiler.errors import Diagnostic

__all__ = ["check_external", "files_of_weights"]

_MOST_NAMED = 3
_INSIDE = "put the weights into the folder of the model's file, and name them relative to it"


def check_external(tensors: Iterable[onnx.TensorProto], folder: Path | None) -> list[Diagnostic]:
    """One finding for each file that does not match the model. The function removes the location of its weights."""
    files: dict[str, list[onnx.TensorProto]] = {}
    for tensor in tensors:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            files.setdefault(_facts(tensor).get("location", ""), []).append(tensor)
    found = []
    for location, weights in files.items():
        problem = _problem(location, weights, folder)
        if problem is not None:
            found.append(problem)
            for weight in weights:
                weight.ClearField("external_data")
                weight.external_data.add(key="location", value="")
    return found


def files_of_weights(model: Path) -> set[Path]:
    """The external files of a model's weights, which may not exist; none for a file that is no model."""
    try:
        graph = ir.load(model).graph
    except Exception:  # the compilation reports the error
        return set()
    tensors = (value.const_value for each in (graph, *graph.subgraphs()) for value in each.initializers.values())
    return {model.parent / tensor.location for tensor in tensors if isinstance(tensor, ir.ExternalTensor)}


def _facts(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _problem(location: str, weights: Sequence[onnx.TensorProto], folder: Path | None) -> Diagnostic | None:
    """The problem with a file or with the weights that it should hold."""
    names = _some([repr(weight.name) for weight in weights], ", ")
    held = f"the weights {names} are" if len(weights) > 1 else f"the weight {names} is"
    if not location:
        return Diagnostic("CC0103", f"{held} in another file, but the model does not name the file")
    if folder is None:
        return Diagnostic("CC0103", f"{held} in the file {location!r}", help="pass the path of the model's file")
    wrong, advice = _why_not(location, folder)
    if wrong:
        return Diagnostic("CC0103", f"{held} in the file {location!r}, which {wrong}", help=advice)
    misfits = [misfit for weight in weights if (misfit := _length_problem(weight, (folder / location).stat().st_size))]
    if misfits:
        message = f"the file {location!r} does not match the model: {_some(misfits, '; ')}"
        return Diagnostic("CC0103", message, help="copy the model and its weights again")
    return None


def _some(texts: Sequence[str], separator: str) -> str:
    """The first few texts, and the number of others."""
    more = len(texts) - _MOST_NAMED
    return separator.join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _why_not(location: str, folder: Path) -> tuple[str, str]:
    """The reason why the file is unreadable, and advice; two empty strings if it is readable."""
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).is_absolute():
        return "is an absolute path", _INSIDE
    if ".." in PurePosixPath(location).parts or "\0" in location:
        return "is outside the model's folder", _INSIDE
    path = folder / location
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return "is a link out of the model's folder", "copy the link's target into the folder"
        found = path.stat()
    except FileNotFoundError:
        return "does not exist", f"put it next to the model, as {path}"
    except (OSError, RuntimeError) as error:  # RuntimeError for links in a circle
        return f"cannot be found: {getattr(error, 'strerror', None) or error}", ""
    if not stat.S_ISREG(found.st_mode):
        return "is a directory" if stat.S_ISDIR(found.st_mode) else "is not an ordinary file", ""
    if found.st_nlink > 1:
        return "has a second name elsewhere (a hard link)", "copy it into the folder"
    return ("", "") if os.access(path, os.R_OK) else ("cannot be read: permission denied", "")


def _length_problem(weight: onnx.TensorProto, size: int) -> str | None:
    """The reason why a weight does not fit a file of `size` bytes; `None` if it does. Length 0 means no length."""
    facts = _facts(weight)
    for key in ("offset", "length"):
        text = facts.get(key, "0")
        if not (text.isascii() and text.isdecimal()):
            return f"the {key} of {weight.name!r} is {text!r}, not a number"
    needed = _bytes_of(weight)
    if needed is None:
        return f"{weight.name!r} has a type or shape that no file can hold"
    offset, length = int(facts.get("offset", "0")), int(facts.get("length", "0")) or needed
    if length != needed:
        return f"{weight.name!r} of shape {list(weight.dims)} has {needed} bytes, but the model says {length}"
    return (
        None if offset + needed <= size else f"{weight.name!r} ends at byte {offset + needed}, but the file has {size}"
    )


def _bytes_of(weight: onnx.TensorProto) -> int | None:
    try:
        bits = int(ir.DataType(weight.data_type).bitwidth)
    except (TypeError, ValueError):  # strings, no type, or an unknown type
        return None
    return -(-math.prod(weight.dims) * bits // 8) if all(size >= 0 for size in weight.dims) else None
