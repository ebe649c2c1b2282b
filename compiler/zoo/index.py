"""A folder of models with inputs, described by its `INDEX.json`: a list of objects, one a model.

`name`, `file` and `cases` (.npz files of inputs) are needed, paths being relative to the folder; `tolerance` is the
part of an output's scale by which it may differ from onnxruntime's, in place of the dtype's own; where it is more than
that of float32, `reason` says why. `uncertain` says why a result may be no nearer than onnxruntime is to itself. Other
keys are for people; one that is nearly one of these is an error.
"""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import json
import math
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir

from compiler.accuracy.compare import TOLERANCES
from compiler.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

__all__ = ["Entry", "read_index", "unpinned", "with_shapes"]

_KEYS = ("name", "file", "cases", "tolerance", "reason", "uncertain")


@dataclass(frozen=True)
class Entry:
    """A model of the folder."""

    name: str
    path: Path
    cases: tuple[Path, ...]
    tolerance: float | None = None
    reason: str = ""
    uncertain: str = ""

    def inputs(self, case: Path) -> dict[str, Any]:
        """The arrays of a case, strings as objects.

        Raises:
            OSError: there is no such file.
            ValueError: it is no .npz file.
        """
        with case.open("rb") as file:
            try:
                with zipfile.ZipFile(file):  # what is none, NumPy may take for another format
                    pass
                with np.load(case, allow_pickle=False) as arrays:
                    return {name: _plain(array) for name, array in arrays.items()}
            except (ValueError, zipfile.BadZipFile) as error:
                raise ValueError(f"{case} is no .npz file that can be read: {error}") from error


def read_index(folder: Path, names: Sequence[str] = ()) -> list[Entry]:
    """The models of a folder, or those named.

    Raises:
        OSError: there is no index.
        ValueError: the index is not one, has no models or two of one name, or none of a name.
    """
    path = folder / "INDEX.json"
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("it is a list of objects, one a model" if listed else "it has no models")
        entries = [_entry(folder, each) for each in listed]
        [(name, count)] = Counter(entry.name for entry in entries).most_common(1)
        if count > 1:
            raise ValueError(f"{count} models have the name {name}")
    except ValueError as error:
        raise ValueError(f"{path} is not an index of models: {error}") from error
    if unknown := set(names) - {entry.name for entry in entries}:
        raise ValueError(f"{folder} has no model {', '.join(sorted(unknown))}")
    return [entry for entry in entries if not names or entry.name in names]


def with_shapes(path: Path, shapes: Mapping[str, Sequence[int | str | None]]) -> onnx.ModelProto:
    """The model with other shapes of its inputs; what its file says of shapes further on is left out."""
    model = onnx_ir.load(path)
    for value in model.graph.inputs:
        if (shape := shapes.get(value.name or "")) is not None:
            value.shape = onnx_ir.Shape(shape)
    inner = (value for node in model.graph.all_nodes() for value in node.outputs)
    for value in (*inner, *model.graph.outputs):
        value.shape = None
    return onnx_ir.to_proto(model)


def unpinned(path: Path) -> onnx.ModelProto:
    """The model with the symbolic dims that it has; where it has none, the first of each input becomes one."""
    inputs = {value.name or "": value.shape for value in onnx_ir.load(path).graph.inputs if value.shape is not None}
    if not all(shape.is_static() for shape in inputs.values()):
        return with_shapes(path, {})
    return with_shapes(path, {name: [f"{name}_0", *shape.numpy()[1:]] for name, shape in inputs.items() if shape})


def _entry(folder: Path, data: Any) -> Entry:
    if not isinstance(data, dict):
        raise ValueError(f"a model is an object, not {data!r}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name is a text, not {name!r}" if "name" in data else "a model has no name")
    try:
        return _checked(folder, name, data)
    except ValueError as error:
        raise ValueError(f"the model {name} {error}") from None


def _checked(folder: Path, name: str, data: Mapping[str, Any]) -> Entry:
    """An entry of sound fields; an error goes on after the model's name."""
    for key in data.keys() - _KEYS:
        if question := did_you_mean(key, _KEYS):
            raise ValueError(f"has {key!r}: {question}")
    for key in ("file", "reason", "uncertain"):
        if not isinstance(data.get(key, ""), str) or (key in _KEYS[:2] and not data.get(key)):
            raise ValueError(f"has the {key} {data[key]!r}, not a text" if key in data else f"has no {key}")
    cases, tolerance = data.get("cases", []), data.get("tolerance")
    if not isinstance(cases, list) or not all(isinstance(case, str) and case for case in cases):
        raise ValueError(f"has the cases {cases!r}, not a list of files")
    if not cases:
        raise ValueError("has no cases")
    reason, uncertain = data.get("reason", ""), data.get("uncertain", "")
    if tolerance is not None:
        _check_tolerance(tolerance, reason)
    return Entry(name, folder / data["file"], tuple(folder / case for case in cases), tolerance, reason, uncertain)


def _check_tolerance(tolerance: Any, reason: str) -> None:
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance < math.inf:
        raise ValueError(f"has the tolerance {tolerance!r}, not a number above 0")
    if tolerance > TOLERANCES["float32"] and not reason:
        raise ValueError(f"has a tolerance of {tolerance:g}, and no reason")


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array
