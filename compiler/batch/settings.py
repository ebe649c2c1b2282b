"""The options, the progress and the result of a run over many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from compiler.errors import Error

__all__ = ["Format", "Progress", "SettingError", "Settings", "Summary"]

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
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    part_rows: int = 65_536
    cast: bool = False
    scale: float | None = None
    format: Format | None = None
    outputs: Sequence[str] | None = None
    resume: bool = False


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
