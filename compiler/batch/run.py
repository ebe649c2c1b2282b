"""Runs a plan over the rows of files, part for part."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.batch.batches import Work, batches, sound
from compiler.batch.declared import batch_size, inputs_of_rows, outputs_of_rows
from compiler.batch.engine import Local
from compiler.batch.files import Data, files_of, format_of
from compiler.batch.manifest import Manifest, opened
from compiler.batch.parts import Held, check_outputs, packed
from compiler.batch.rows import Reading
from compiler.batch.settings import Progress, Settings, Summary
from compiler.custom_modules import imported_modules
from compiler.plan import Plan
from compiler.runtime.session import load
from compiler.validate import validate_function, validate_instance

if TYPE_CHECKING:
    from compiler.batch.batches import Batch
    from compiler.batch.declared import Value
    from compiler.batch.engine import Engine

__all__ = ["checked", "run_batch", "run_rows", "sha256"]

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
    settings = checked(data, output, settings, progress, stop)
    session = load(plan, device, threads, max_memory=max_memory)
    return run_rows(sha256(plan), data, output, settings, Local(session), progress, stop)


def checked(data: Any, output: Any, settings: Any, progress: Any, stop: Any) -> Settings:
    """The settings, or the default ones, after these arguments of `run_batch` are checked.

    Raises:
        TypeError: an argument has a wrong type.
    """
    paths = "a list of files, folders and patterns"
    if isinstance(data, str | os.PathLike):
        raise TypeError(f"data: expected {paths}, found one path: write [{os.fspath(data)!r}]")
    validate_instance("data", data, Sequence, paths)
    for path in data:
        validate_instance("data", path, (str, os.PathLike), f"{paths}, each a path")
    validate_instance("output", output, (str, os.PathLike), "the path of a folder")
    if progress is not None:
        for name in ("begin", "batch", "part"):
            if not callable(getattr(progress, name, None)):
                expected = f"an object with the method {name}, as compiler.batch.Progress"
                raise TypeError(f"progress: expected {expected}, found {type(progress).__name__}")
    if stop is not None:
        validate_function("stop", stop)
    if settings is None:
        return Settings()
    validate_instance("settings", settings, Settings, "compiler.batch.Settings(…)")
    assert isinstance(settings, Settings)
    return settings


def run_rows(
    plan: str,
    data: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    settings: Settings,
    engine: Engine,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
) -> Summary:
    """Run the rows of files with an engine, as `run_batch` does. `plan` is the SHA-256 of the plan."""
    inputs = inputs_of_rows(engine.inputs, settings.columns)
    outputs = outputs_of_rows(engine.outputs, settings.outputs, engine.inputs)
    size, is_fixed = batch_size(engine.inputs, settings.batch)
    files = files_of(data)
    form = settings.format or format_of(files)
    check_outputs(outputs, form)
    rows = Data(files, Reading(inputs, settings.cast, settings.scale))
    work = Work(size, is_fixed, [value.name for value in outputs])
    began = time.monotonic()
    with opened(Path(output), _identity(plan, rows, settings, size, form), settings.resume) as manifest:
        known = manifest.end
        writer = _Writer(manifest, outputs, rows, Path(output) / f"part.{form}")
        results = sound(engine.results(work, batches(rows.read(known), size, rows.count)))
        finished = _write_parts(results, writer, rows.count, settings.part_rows, progress, stop)
        written, bad = (sum(getattr(part, what) for part in manifest.parts) for what in ("rows", "bad"))
        parts = len(manifest.parts)
    seconds = time.monotonic() - began
    return Summary(rows.count, written, bad, known, parts, size, seconds, engine.device, finished)


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


def _write_parts(
    results: Iterator[Batch],
    writer: _Writer,
    count: int,
    part_rows: int,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
) -> bool:
    """Write the results of all rows without a part. `count` counts all rows. Returns whether no row is left."""
    first = writer.manifest.end
    held, stopped = Held(first, part_rows), False
    if progress is not None:
        progress.begin(count, first)
    for done in results:
        held.add(done)
        stopped = stop is not None and stop()
        if progress is not None:
            progress.batch(held.end)
        if held.is_full or stopped or held.end == count:
            name = writer.write(held)
            if progress is not None:
                progress.part(name, held.end)
            held = Held(held.end, part_rows)
        if stopped:
            break
    return held.first == count


def _identity(plan: str, data: Data, settings: Settings, size: int, form: str) -> dict[str, Any]:
    """The plan, the settings and the data of a run. A run continues only an earlier one with the same identity."""
    chosen = asdict(settings) | {"batch": size, "format": form}
    del chosen["resume"], chosen["part_rows"]
    chosen |= {"columns": dict(settings.columns), "outputs": None if settings.outputs is None else [*settings.outputs]}
    custom = {"custom": [module.digest for module in imported_modules()]} if imported_modules() else {}
    return {"plan": plan, "settings": chosen, **custom, "rows": data.count, "files": data.identity}


def sha256(plan: Plan | str | os.PathLike[str]) -> str:
    """The SHA-256 of a plan file, in hexadecimal digits.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(plan, Plan):
        return hashlib.sha256(plan.data).hexdigest()
    digest = hashlib.sha256()
    with Path(plan).open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
