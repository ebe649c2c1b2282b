"""The options, the progress and the result of a run over many rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, Protocol, get_args

from compiler.errors import Error
from compiler.validate import validate_instance, validate_list, validate_mapping, validate_whole_number

__all__ = ["Format", "Progress", "SettingError", "Settings", "Summary", "validate_columns"]

Format = Literal["parquet", "npz"]


@dataclass(frozen=True)
class Settings:
    """How to run a plan over rows.

    `columns` maps inputs to the columns or arrays that hold them; another input has the column of its own name. `batch`
    is the number of rows of a run, by default the size that the plan fixes, else 32. A part of the output ends after
    `part_rows` rows, or earlier (`compiler.batch.parts`). With `cast`, the run converts numbers to the input's
    dtype even if this rounds them. It multiplies the pixels of images by `scale`. `format` is the format of the
    parts: by default npz if all data are .npz or .safetensors files, else Parquet. `outputs` names the outputs to
    compute, by default all. With `resume`, the run continues an interrupted run in the same folder.

    Raises:
        TypeError, ValueError: a field has a wrong type or value.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    part_rows: int = 65_536
    cast: bool = False
    scale: float | None = None
    format: Format | None = None
    outputs: Sequence[str] | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        validate_columns(self.columns)
        for name in ("batch", "part_rows"):
            rows = getattr(self, name)
            if rows is not None or name == "part_rows":
                object.__setattr__(self, name, validate_whole_number(name, rows, 1))
        for name in ("cast", "resume"):
            validate_instance(name, getattr(self, name), bool, "True or False")
        if self.scale is not None:
            object.__setattr__(self, "scale", _finite("scale", self.scale))
        if self.format is not None and self.format not in get_args(Format):
            raise ValueError(f"format: expected {' or '.join(map(repr, get_args(Format)))}, found {self.format!r}")
        if self.outputs is not None:
            validate_list("outputs", self.outputs)


def validate_columns(columns: Any) -> None:
    """Check the names of columns, by input.

    Raises:
        TypeError: they are no dict, or a name is no string.
    """
    validate_mapping("columns", columns, 'a dict of columns by input, as {"picture": "pixels"}')
    for name, column in columns.items():
        validate_instance(f"columns[{name!r}]", column, str, "the name of a column")


def _finite(argument: str, value: Any) -> float:
    validate_instance(argument, value, Real, "a number")
    if not math.isfinite(value):
        raise ValueError(f"{argument}: expected a finite number, found {value}")
    return float(value)


class SettingError(Error):
    """A field of the settings does not fit the plan or the data, or is missing.

    `problem` is the text without its advice, which names no field or option. `setting` names the field. `value` is the
    name of the input, if the field is `columns`.
    """

    def __init__(self, problem: str, advice: str = "", setting: str = "", value: str = "") -> None:
        self.problem, self.setting, self.value = problem, setting, value
        super().__init__(f"{problem}{advice}")


@dataclass(frozen=True)
class Summary:
    """The result of a run: `rows` counts all rows, `written` the rows with outputs, and `bad` the bad rows.

    `known` rows were in parts before the run. `seconds` is the time for the others, without loading the plan. If the
    caller stopped the run, `finished` is false.
    """

    rows: int
    written: int
    bad: int
    known: int
    parts: int
    batch: int
    seconds: float
    device: str
    finished: bool


class Progress(Protocol):
    """Receives the events of a run."""

    def begin(self, rows: int, known: int) -> None:
        """The data have so many rows. Parts of an earlier run hold the results of the first `known` ones."""

    def batch(self, end: int) -> None:
        """The first `end` rows are computed."""

    def part(self, name: str, end: int) -> None:
        """A part is written. The results of the first `end` rows are in files."""
