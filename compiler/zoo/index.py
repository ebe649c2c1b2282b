"""A folder of models with inputs. Its `INDEX.json` is a list with one object for each model.

An object needs `name`, `file` and `cases` (.npz files of inputs). Paths are relative to the folder. `tolerance`
replaces the tolerance of the dtype, as a fraction of an output's scale; a tolerance above that of float32 needs a
`reason`. `uncertain` says why results may differ by as much as the reference noise. Other keys are for human readers,
but a misspelled key is an error.
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
        """The arrays of a case; object arrays for strings.

        Raises:
            OSError: there is no such file.
            ValueError: it is not an .npz file.
        """
        with case.open("rb") as file:
            try:
                with zipfile.ZipFile(file):  # NumPy may read another format
                    pass
                with np.load(case, allow_pickle=False) as arrays:
                    return {name: _plain(array) for name, array in arrays.items()}
            except (ValueError, zipfile.BadZipFile) as error:
                raise ValueError(f"cannot read {case} as an .npz file: {error}") from error


def read_index(folder: Path, names: Sequence[str] = ()) -> list[Entry]:
    """The models of a folder, or only the named ones.

    Raises:
        OSError: there is no index.
        ValueError: the index is invalid, lists no models or one name twice, or lacks a name.
    """
    path = folder / "INDEX.json"
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("expected a list with one object for each model" if listed else "it lists no models")
        entries = [_entry(folder, each) for each in listed]
        [(name, count)] = Counter(entry.name for entry in entries).most_common(1)
        if count > 1:
            raise ValueError(f"{count} models have the name {name}")
    except ValueError as error:
        raise ValueError(f"{path} is not a valid index of models: {error}") from error
    if unknown := set(names) - {entry.name for entry in entries}:
        raise ValueError(f"{folder} has no model {', '.join(sorted(unknown))}")
    return [entry for entry in entries if not names or entry.name in names]


def with_shapes(path: Path, shapes: Mapping[str, Sequence[int | str | None]]) -> onnx.ModelProto:
    """The model with other shapes of its inputs, and without the shapes that its file declares for other values."""
    model = onnx_ir.load(path)
    for value in model.graph.inputs:
        if (shape := shapes.get(value.name or "")) is not None:
            value.shape = onnx_ir.Shape(shape)
    inner = (value for node in model.graph.all_nodes() for value in node.outputs)
    for value in (*inner, *model.graph.outputs):
        value.shape = None
    return onnx_ir.to_proto(model)


def unpinned(path: Path) -> onnx.ModelProto:
    """The model with its symbolic dims. A model without any gets a symbolic first dim for each input."""
    inputs = {value.name or "": value.shape for value in onnx_ir.load(path).graph.inputs if value.shape is not None}
    if not all(shape.is_static() for shape in inputs.values()):
        return with_shapes(path, {})
    return with_shapes(path, {name: [f"{name}_0", *shape.numpy()[1:]] for name, shape in inputs.items() if shape})


def _entry(folder: Path, data: Any) -> Entry:
    if not isinstance(data, dict):
        raise ValueError(f"a model must be an object, not {data!r}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name must be a string, not {name!r}" if "name" in data else "a model has no name")
    try:
        return _checked(folder, name, data)
    except ValueError as error:
        raise ValueError(f"the model {name} {error}") from None


def _checked(folder: Path, name: str, data: Mapping[str, Any]) -> Entry:
    """An entry after checking its fields. The caller prepends the model's name to the text of an error."""
    for key in data.keys() - _KEYS:
        if question := did_you_mean(key, _KEYS):
            raise ValueError(f"has {key!r}: {question}")
    for key in ("file", "reason", "uncertain"):
        if not isinstance(data.get(key, ""), str) or (key in _KEYS[:2] and not data.get(key)):
            raise ValueError(f"has the {key} {data[key]!r}, not a string" if key in data else f"has no {key}")
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
        raise ValueError(f"has a tolerance of {tolerance:g} without a reason")


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array
