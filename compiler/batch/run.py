"""Runs a plan over the rows of files, part for part."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.batch.batches import Runner, batches
from compiler.batch.declared import batch_size, inputs_of_rows, outputs_of_rows
from compiler.batch.files import Data, files_of, format_of
from compiler.batch.manifest import Manifest, opened
from compiler.batch.parts import Held, check_outputs, packed
from compiler.batch.rows import Reading
from compiler.batch.settings import Progress, Settings, Summary
from compiler.plan import Plan
from compiler.runtime.session import load
from compiler.validate import validate_whole_number

if TYPE_CHECKING:
    from compiler.batch.declared import Value

__all__ = ["run_batch"]

_PIECE = 1 << 20


def run_batch(
    plan: Plan | str | os.PathLike[str],
    data: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Runs a plan over the rows of files, and writes the outputs as files into the folder `output`.

    `data` are files (.parquet, .npz, .safetensors, .png, .jpg), folders of such files, and patterns. `device`,
    `threads` and `max_memory` are those of `compiler.load`. Rows that do not fit the inputs, and rows for which a step
    fails, are in `_bad_rows.jsonl` of the folder with their reasons. After each batch, the run calls `stop`. If this
    returns true, the run writes the finished rows and ends. `Settings.resume` continues it.

    Raises:
        Error: the plan, the data and the settings do not fit together, the folder is not empty, or with `resume` it is
            of another run.
        PlanError, DeviceError, RunError: as `compiler.load` and `Session.run`.
        OSError: a file cannot be read or written.
        TypeError, ValueError: an argument has a wrong type or value.
    """
    settings = settings or Settings()
    for name, value in (("batch", settings.batch), ("part_rows", settings.part_rows)):
        if value is not None:
            validate_whole_number(name, value, 1)
    session = load(plan, device, threads, max_memory=max_memory)
    inputs = inputs_of_rows(session.inputs, settings.columns)
    outputs = outputs_of_rows(session.outputs, settings.outputs, session.inputs)
    size, is_fixed = batch_size(session.inputs, settings.batch)
    files = files_of(data)
    form = settings.format or format_of(files)
    check_outputs(outputs, form)
    rows = Data(files, Reading(inputs, settings.cast, settings.scale))
    runner = Runner(session, size, is_fixed, [value.name for value in outputs])
    began = time.monotonic()
    with opened(Path(output), _identity(plan, rows, settings, size, form), settings.resume) as manifest:
        known = manifest.end
        writer = _Writer(manifest, outputs, rows, Path(output) / f"part.{form}")
        finished = _run(runner, writer, rows, settings.part_rows, progress, stop)
        written, bad = (sum(getattr(part, what) for part in manifest.parts) for what in ("rows", "bad"))
        parts = len(manifest.parts)
    seconds = time.monotonic() - began
    return Summary(rows.count, written, bad, known, parts, size, seconds, session.device, finished)


class _Writer:
    """Writes parts. The suffix of `path` is theirs."""

    def __init__(self, manifest: Manifest, outputs: Sequence[Value], data: Data, path: Path) -> None:
        self.manifest, self._outputs, self._data, self._path = manifest, outputs, data, path

    def write(self, held: Held) -> str:
        """Write a part, and return its name."""
        bad, rows = held.bad, sum(len(each.rows) for each in held.done)
        lines = [{**self._data.place(row), "reason": reason} for row, reason in bad.items()]
        content = packed(held.done, self._outputs, self._data, self._path)
        return self.manifest.add(content, self._path.suffix, held.end, rows, lines).name


def _run(
    runner: Runner,
    writer: _Writer,
    data: Data,
    part_rows: int,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
) -> bool:
    """Run the rows without a part. Returns whether no row is left."""
    first = writer.manifest.end
    held, stopped = Held(first, part_rows), False
    if progress is not None:
        progress.begin(data.count, first)
    for batch in batches(data.read(first), runner.size, data.count):
        held.add(runner.run(batch))
        stopped = stop is not None and stop()
        if progress is not None:
            progress.batch(held.end)
        if held.is_full or stopped or held.end == data.count:
            name = writer.write(held)
            if progress is not None:
                progress.part(name, held.end)
            held = Held(held.end, part_rows)
        if stopped:
            break
    return held.first == data.count


def _identity(
    plan: Plan | str | os.PathLike[str], data: Data, settings: Settings, size: int, form: str
) -> dict[str, Any]:
    """The plan, the settings and the data of a run. A run continues only an earlier one with the same identity."""
    chosen = asdict(settings) | {"batch": size, "format": form}
    del chosen["resume"], chosen["part_rows"]
    chosen |= {"columns": dict(settings.columns), "outputs": None if settings.outputs is None else [*settings.outputs]}
    return {"plan": _sha256(plan), "settings": chosen, "rows": data.count, "files": data.identity}


def _sha256(plan: Plan | str | os.PathLike[str]) -> str:
    if isinstance(plan, Plan):
        return hashlib.sha256(plan.data).hexdigest()
    digest = hashlib.sha256()
    with Path(plan).open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
