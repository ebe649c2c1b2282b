"""A folder of models with inputs, described by its `INDEX.json`: a list of objects, one a model.

`name`, `file` and `cases` (.npz files of inputs) are needed, paths being relative to the folder; `tolerance` is the
part of an output's scale by which it may differ from onnxruntime's, in place of the dtype's own; where it is more than
that of float32, `reason` says why. `uncertain` says why a result may be no nearer than onnxruntime is to itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir

from compiler.compare import TOLERANCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

__all__ = ["Entry", "read_index", "unpinned", "with_shapes"]


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
        """The arrays of a case, strings as objects."""
        with np.load(case, allow_pickle=False) as arrays:
            return {name: _plain(array) for name, array in arrays.items()}


def read_index(folder: Path, names: Sequence[str] = ()) -> list[Entry]:
    """The models of a folder, or those named.

    Raises:
        OSError: there is no index.
        ValueError: the index is not one, or has no model of a name.
    """
    try:
        entries = [_entry(folder, each) for each in json.loads((folder / "INDEX.json").read_text())]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder / 'INDEX.json'} is not an index of models: {error!r}") from error
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


def _entry(folder: Path, data: Mapping[str, Any]) -> Entry:
    cases = tuple(folder / case for case in data["cases"])
    if not cases:
        raise ValueError(f"the model {data['name']} has no case in {folder / 'INDEX.json'}")
    tolerance, reason, uncertain = data.get("tolerance"), data.get("reason", ""), data.get("uncertain", "")
    if not isinstance(uncertain, str):
        raise TypeError(f"uncertain is a reason, not {uncertain!r}")
    if tolerance is not None and tolerance > TOLERANCES["float32"] and not reason:
        message = f"{folder / 'INDEX.json'} gives the model {data['name']} a tolerance of {tolerance:g}, and no reason"
        raise ValueError(message)
    return Entry(data["name"], folder / data["file"], cases, tolerance, reason, uncertain)


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array
