"""Writes cases in the format of the ONNX model zoo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx import numpy_helper


def write_data_set(
    folder: Path, inputs: Sequence[Any], outputs: Sequence[Any], names: Sequence[str] | None = None
) -> None:
    """Write a folder of inputs and outputs. `names` has the names of all of them; the usual ones are empty."""
    folder.mkdir(parents=True)
    files = [f"input_{index}.pb" for index in range(len(inputs))]
    files += [f"output_{index}.pb" for index in range(len(outputs))]
    for file, value, name in zip(files, [*inputs, *outputs], names or [""] * len(files), strict=True):
        make = numpy_helper.from_list if isinstance(value, list) else numpy_helper.from_array
        (folder / file).write_bytes(make(value, name).SerializeToString())
