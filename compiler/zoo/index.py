"""A folder of models with inputs. Its `INDEX.json` is a list with one object for each model.

An object needs `name`, `file` and `cases`. A case is an .npz file of inputs, or a folder of inputs and outputs
(`compiler.zoo.data_set`). Without `cases`, they are the folders `test_data_set_*` next to the model. Paths are relative
to the folder. `tolerance` replaces the tolerance of the dtype, as a fraction of an output's scale; a tolerance above
that of float32 needs a `reason`. `uncertain` says why results may differ by as much as the reference noise. `tags` are
words that select models (`compiler.zoo.select`). `task` names measures that an output must reach
(`compiler.zoo.agreement.task`). Other keys are for human readers, but a misspelled key is an error.

With `url`, `sha256` and `license`, the model is a download (`compiler.zoo.download`). `file` is its path in the
archive, and so are cases that are folders. Without an archive, an entry has no `file`.
"""

from __future__ import annotations

import json
import math
import shlex
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES
from compiler.errors import did_you_mean, program
from compiler.zoo.agreement.task import Task, tasks_of
from compiler.zoo.data_set import data_sets, files_in
from compiler.zoo.download import Download, cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INDEX", "Entry", "read_index"]

INDEX = "INDEX.json"
"""The name of the index in its folder."""

_KEYS = ("name", "file", "cases", "tolerance", "reason", "uncertain", "tags", "task", "url", "sha256", "license")


@dataclass(frozen=True)
class Entry:
    """A model of the folder, or of the cache if it is a download. `folder` is the folder of the index."""

    name: str
    path: Path
    cases: tuple[Path, ...]
    tolerance: float | None = None
    reason: str = ""
    uncertain: str = ""
    tags: tuple[str, ...] = ()
    download: Download | None = None
    folder: Path = Path()
    tasks: tuple[Task, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The model and the files of its cases."""
        return (self.path, *(file for case in self.cases for file in (files_in(case) if case.is_dir() else [case])))

    @property
    def unfetched(self) -> str:
        """A sentence with the command that fetches the model; empty if that is not necessary."""
        if self.download is None or self.download.is_fetched:
            return ""
        words = [program(), "zoo", "fetch", "--zoo", str(self.folder), "--only", self.name]
        if self.download.cache != cache_folder():
            words += ["--cache", str(self.download.cache)]
        return f"it is not fetched: run `{shlex.join(words)}`"

    def outputs(self, case: Path) -> dict[str, Any]:
        """The expected outputs that a case has; none in an .npz file.

        Raises: as `inputs`.
        """
        from compiler.zoo.serialized import read_outputs

        return read_outputs(case, self.path) if case.is_dir() else {}

    def inputs(self, case: Path) -> dict[str, Any]:
        """The arrays of a case; object arrays for strings.

        Raises:
            OSError: there is no such file.
            ValueError: it is not an .npz file, or a folder has a file that does not fit the model.
        """
        if case.is_dir():
            from compiler.zoo.serialized import read_inputs

            return read_inputs(case, self.path)
        with case.open("rb") as file:
            try:
                with zipfile.ZipFile(file):  # NumPy may read another format
                    pass
                with np.load(case, allow_pickle=False) as arrays:
                    return {name: _plain(array) for name, array in arrays.items()}
            except (ValueError, zipfile.BadZipFile) as error:
                raise ValueError(f"cannot read {case} as an .npz file: {error}") from error


def read_index(folder: Path, cache: Path | None = None) -> list[Entry]:
    """The models of a folder. Those that are downloads are in `cache`, by default the user's own.

    Raises:
        OSError: there is no index.
        ValueError: the index is invalid, or lists no models or one name twice; or there is no place for a cache.
    """
    path = folder / INDEX
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("expected a list with one object for each model" if listed else "it lists no models")
        entries = [_entry(folder, cache, each) for each in listed]
        [(name, count)] = Counter(entry.name for entry in entries).most_common(1)
        if count > 1:
            raise ValueError(f"{count} models have the name {name}")
    except ValueError as error:
        raise ValueError(f"{path} is not a valid index of models: {error}") from error
    return entries


def _entry(folder: Path, cache: Path | None, data: Any) -> Entry:
    if not isinstance(data, dict):
        raise ValueError(f"a model must be an object, not {data!r}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name must be a string, not {name!r}" if "name" in data else "a model has no name")
    try:
        return _checked(folder, cache, name, data)
    except ValueError as error:
        raise ValueError(f"the model {name} {error}") from None


def _checked(folder: Path, cache: Path | None, name: str, data: Mapping[str, Any]) -> Entry:
    """An entry after checking its fields. The caller prepends the model's name to the text of an error."""
    for key in data.keys() - _KEYS:
        if question := did_you_mean(key, _KEYS):
            raise ValueError(f"has {key!r}: {question}")
    download = Download.of(data, cache_folder(cache)) if "url" in data else None
    needs_file = download is None or download.is_archive
    for key in ("file", "reason", "uncertain"):
        if not isinstance(data.get(key, ""), str) or (key == "file" and needs_file and not data.get(key)):
            raise ValueError(f"has the {key} {data[key]!r}, not a string" if key in data else f"has no {key}")
    if download is not None and (problem := download.misplaced(data.get("file"))):
        raise ValueError(problem)
    cases, tags, tolerance = data.get("cases", []), data.get("tags", []), data.get("tolerance")
    for key, items, what in (("cases", cases, "files"), ("tags", tags, "words")):
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            raise ValueError(f"has the {key} {items!r}, not a list of {what}")
    path = folder / data["file"] if download is None else download.folder / data.get("file", download.name)
    found = tuple(_case(folder, download, case) for case in cases) or data_sets(path)
    if not found and not (download is not None and download.is_archive):
        raise ValueError("has no cases")
    reason, uncertain = data.get("reason", ""), data.get("uncertain", "")
    if tolerance is not None:
        _check_tolerance(tolerance, reason)
    tasks = tasks_of(data["task"]) if "task" in data else ()
    return Entry(name, path, found, tolerance, reason, uncertain, tuple(tags), download, folder, tasks)


def _case(folder: Path, download: Download | None, case: str) -> Path:
    """The place of a case. Only a folder may be in an archive."""
    is_inside = download is not None and download.is_archive and not case.endswith(".npz")
    return download.folder / case if download is not None and is_inside else folder / case


def _check_tolerance(tolerance: Any, reason: str) -> None:
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance < math.inf:
        raise ValueError(f"has the tolerance {tolerance!r}, not a number above 0")
    if tolerance > TOLERANCES["float32"] and not reason:
        raise ValueError(f"has a tolerance of {tolerance:g} without a reason")


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array
