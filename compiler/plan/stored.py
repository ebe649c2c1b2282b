"""Large plans in temporary files, so that comparisons of plans need no memory for the files."""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from compiler.plan.header import read_header
from compiler.plan.plan import Plan
from compiler.plan.write import Part, parts_with_outputs

__all__ = ["StoredPlan", "plan_of", "with_outputs"]

_OPEN_FILES = Path("/proc/self/fd")
"""The folder of this process's open files on Linux. It also lists files without a name."""


class StoredPlan(Plan):
    """A plan in a temporary file. The system deletes the file with the last session and the plan, or with the process.

    The file is in the folder that the environment variable TMPDIR names, or in /tmp.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        """Write the file.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        is_shown = _OPEN_FILES.is_dir()
        kind = tempfile.TemporaryFile if is_shown else tempfile.NamedTemporaryFile
        file: Any = kind(prefix="candle-", suffix=".plan")
        file.writelines(parts)
        file.flush()
        path = str(_OPEN_FILES / str(file.fileno())) if is_shown else file.name
        self.__dict__.update(_file=file, _path=path)  # the class is frozen

    def opened(self) -> BinaryIO:
        """The file, opened again, with a position of its own."""
        return Path(self.source).open("rb")

    @property
    def source(self) -> str:
        """The path of the file."""
        path: str = self.__dict__["_path"]
        return path

    @property
    def size(self) -> int:
        """The number of bytes of the file."""
        return Path(self.source).stat().st_size

    @property
    def data(self) -> bytes:
        """The whole file."""
        return Path(self.source).read_bytes()

    @cached_property
    def document(self) -> dict[str, Any]:
        """The plan without the elements of constants, as JSON of the schema `plan.schema.json`."""
        with self.opened() as file:
            document: dict[str, Any] = json.loads(read_header(file)["__metadata__"]["plan"])
        return document

    def __repr__(self) -> str:
        return f"Plan({len(self.document['main']['steps'])} steps, in a temporary file)"


def plan_of(parts: Sequence[Part], most: float = math.inf) -> Plan:
    """The plan of these parts of its file: in memory, or in a temporary file if it has more than `most` bytes."""
    is_large = sum(memoryview(part).nbytes for part in parts) > most
    return StoredPlan(parts) if is_large else Plan(b"".join(parts))


def with_outputs(plan: Plan, values: Sequence[int]) -> Plan:
    """The plan with these values of its main block as additional outputs, each once."""
    if isinstance(plan, StoredPlan):
        with plan.opened() as file:
            return StoredPlan(parts_with_outputs(file, values))
    return Plan(b"".join(parts_with_outputs(io.BytesIO(plan.data), values)))
