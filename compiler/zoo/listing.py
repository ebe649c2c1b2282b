"""The index of a folder of ONNX files: it lists each file as a model, with random inputs as its case."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from compiler.accuracy.random_inputs import random_inputs
from compiler.atomic_files import write_whole
from compiler.errors import CompileError
from compiler.frontend.load import load_model
from compiler.ir.dtypes import from_ir
from compiler.ir.symbols import shown
from compiler.plan import TensorInfo
from compiler.zoo.data_set import data_sets
from compiler.zoo.index import INDEX, read_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Listing", "list_models"]


@dataclass
class Listing:
    """The names of the models that were added, and of those that could not be, each with the reason.

    `known` is the number of models that the index had before.
    """

    known: int
    added: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def list_models(folder: Path, sizes: Mapping[str, int], seed: int = 0) -> Listing:
    """Add the ONNX files of a folder and its subfolders to its INDEX.json, except those that it lists.

    The cases of a model are the file `NAME.npz` beside it, or else the folders `test_data_set_*` if no other model is
    beside them. Without a case, the function writes such a file with random inputs: `sizes` gives the sizes of those
    symbolic dimensions that a model has.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the index is invalid, there is no ONNX file, or no model has a symbolic dimension of `sizes`.
    """
    path = folder / INDEX
    known = read_index(folder) if path.exists() else []
    taken = {entry.path for entry in known}
    files = [each for each in sorted(folder.rglob("*.onnx")) if each.is_file() and each not in taken]
    if not known and not files:
        raise ValueError(f"{folder} has no files with names that end with .onnx")
    made, cases = Listing(len(known)), _Cases(sizes, seed)
    names = {model: model.relative_to(folder).with_suffix("").as_posix() for model in files}
    for model, name in names.items():
        try:
            if name in (entry.name for entry in known):
                raise ValueError("the index has another model with this name")
            cases.add(model)
            made.added.append(name)
        except CompileError as error:
            made.failed[name] = "\n".join(f"{each.message} ({each.code})" for each in error.diagnostics)
        except (TypeError, ValueError) as error:
            made.failed[name] = str(error)
    cases.write()
    entries = json.loads(path.read_text(encoding="utf-8")) if known else []
    for model, name in names.items():
        if name in made.added:
            file, *listed = (each.relative_to(folder).as_posix() for each in (model, *cases.of(model)))
            entries.append({"name": name, "file": file, "cases": listed})
    if made.added:
        write_whole(path, f"{json.dumps(entries, indent=2, ensure_ascii=False)}\n".encode())
    return made


class _Cases:
    """The cases of models without a case. `write` writes them together, if each size is in some model."""

    def __init__(self, sizes: Mapping[str, int], seed: int) -> None:
        self._sizes, self._seed = sizes, seed
        self._unused = set(sizes)
        self._files: dict[Path, bytes] = {}

    def add(self, model: Path) -> None:
        """Make the case of a model.

        Raises:
            CompileError: the model cannot be read.
            TypeError, ValueError: an input has no random value, or a file of arrays cannot hold it.
        """
        declared = _inputs(load_model(model).model)
        symbols = {dim for each in declared for dim in each.shape or () if isinstance(dim, str)}
        self._unused -= symbols
        case = model.with_suffix(".npz")
        if self.of(model) == (case,) and not case.exists():
            sizes = {name: size for name, size in self._sizes.items() if name in symbols}
            self._files[case] = _npz(random_inputs(declared, sizes, self._seed))

    def of(self, model: Path) -> tuple[Path, ...]:
        """The cases of a model: those that exist, or the one to make."""
        case, is_alone = model.with_suffix(".npz"), len([*model.parent.glob("*.onnx")]) == 1
        return ((data_sets(model) if is_alone else ()) if not case.exists() else ()) or (case,)

    def write(self) -> None:
        """Write the files.

        Raises:
            OSError: a file cannot be written.
            ValueError: no model has one of the sizes.
        """
        if self._unused:
            raise ValueError(f"no new model has a symbolic dimension {min(self._unused)!r}")
        for path, data in self._files.items():
            write_whole(path, data)


def _inputs(model: ir.Model) -> Sequence[TensorInfo]:
    """The inputs of a model that have no default value."""
    return [_info(value) for value in model.graph.inputs if value.name not in model.graph.initializers]


def _info(value: ir.Value) -> TensorInfo:
    if not isinstance(value.type, ir.TensorType):
        raise ValueError(f"the input {value.name!r} is no tensor: write its case, and list the model yourself")
    dims = None if value.shape is None else tuple(map(_dim, value.shape))
    return TensorInfo(value.name or "", from_ir(value.type.dtype), dims)


def _dim(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim if isinstance(dim, int) else shown(dim.value) if dim.value else None


def _npz(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """The bytes of an .npz file. It holds strings as text of a fixed width."""
    kept = {name: each.astype(str) if each.dtype == object else each for name, each in arrays.items()}
    if odd := [name for name, each in kept.items() if each.dtype.isbuiltin == 2]:
        raise ValueError(f"an .npz file cannot hold the input {odd[0]!r} of {kept[odd[0]].dtype.name}")
    buffer = io.BytesIO()
    np.savez(buffer, **kept)  # type: ignore[arg-type]
    return buffer.getvalue()
