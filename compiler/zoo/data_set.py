"""A case in the format of the ONNX model zoo: a folder of `input_0.pb`, …, `output_0.pb`, … with serialized values."""

from __future__ import annotations

import itertools
from pathlib import Path

__all__ = ["data_sets", "files_in", "numbered"]


def data_sets(model: Path) -> tuple[Path, ...]:
    """The folders `test_data_set_*` next to a model, in the order of their numbers."""
    found = (each for each in model.parent.glob("test_data_set_*") if each.is_dir())
    return tuple(sorted(found, key=lambda each: (len(each.name), each.name)))


def files_in(folder: Path) -> list[Path]:
    """The files of a case."""
    return [each for kind in ("input", "output") for each in numbered(folder, kind)]


def numbered(folder: Path, kind: str) -> list[Path]:
    """The files `KIND_0.pb`, `KIND_1.pb` and so on, up to the first number without a file."""
    return list(itertools.takewhile(Path.is_file, (folder / f"{kind}_{index}.pb" for index in itertools.count())))
