"""The file of results: one line of JSON for each model, written as soon as the model is done.

A line has the name of the `model`, its `tags`, and a text `what`, which names the task. `digest` covers everything that
decides the result: the files of the model, the options, and the versions of the compiler and of onnxruntime. `ok` says
whether the result was acceptable at that time, and `result` is the result in words. `limits` are the limits of the
task, and `ending` is how it ended.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.atomic_files import write_whole
from compiler.custom_modules import imported_modules
from compiler.processes.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler.processes.run import Limits
    from compiler.zoo.task_arguments import Asked

__all__ = ["Results", "ending_of", "read_results"]

_KEYS = {"model", "what", "ok", "result", "digest", "limits", "ending"}
"""The keys of every line. Files of earlier versions lack the `tags`."""


class Results:
    """The lines of a file of results, by task and model. A file that does not exist has none.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is another kind of file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = {(line["what"], line["model"]): line for line in read_results(path)} if path.exists() else {}

    @property
    def failed(self) -> set[str]:
        """The names of the models whose last result was not acceptable."""
        return {line["model"] for line in self._lines.values() if not line["ok"]}

    def ending(self, asked: Asked, limits: Limits) -> Ending | None:
        """The known ending of a task; `None` if it has no result, or a file, an option or a version has changed.

        The ending of a task that reached a limit counts only for equal limits.
        """
        line = self._lines.get((asked.what, asked.entry.name))
        if line is None or line["digest"] != _digest(asked):
            return None
        line["tags"] = list(asked.entry.tags)  # no result depends on them
        ending = ending_of(line)
        is_limited = ending.kind in ("timed out", "out of memory")
        return None if is_limited and line["limits"] != asdict(limits) else ending

    def begin(self, asked: Iterable[Asked]) -> None:
        """Write the file without the lines of these tasks, which will run, and without an incomplete last line."""
        for each in asked:
            self._lines.pop((each.what, each.entry.name), None)
        write_whole(self._path, b"".join(map(_line, self._lines.values())))

    def add(self, asked: Asked, limits: Limits, ending: Ending, is_acceptable: bool, result: str) -> None:
        """Append the line of a task."""
        entry, kept = asked.entry, asdict(replace(ending, traceback=""))
        facts = {"model": entry.name, "tags": list(entry.tags), "what": asked.what, "ok": is_acceptable}
        line = {**facts, "result": result, "digest": _digest(asked), "limits": asdict(limits), "ending": kept}
        self._lines[asked.what, asked.entry.name] = line
        with self._path.open("ab", buffering=0) as file:
            file.write(_line(line))


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def ending_of(line: Mapping[str, Any]) -> Ending:
    """The ending of the task of a line."""
    return Ending(**{**line["ending"], "parts": tuple(line["ending"]["parts"])})


def read_results(path: Path) -> list[dict[str, Any]]:
    """The lines of a file. The last one may be incomplete, if the program was killed while it wrote it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is another kind of file.
    """
    texts = path.read_bytes().split(b"\n")
    whole = texts[:-1]  # the text after the last line break is empty, or an incomplete line
    try:
        lines = [json.loads(text) for text in whole]
        if (texts[-1] and not texts[-1].startswith(b"{")) or not all(_is_result(line) for line in lines):
            raise ValueError("its lines are not results")
    except ValueError as error:
        raise ValueError(f"{path} is not a file of results of `candlec zoo`: {error}") from None
    return lines


def _is_result(line: Any) -> bool:
    return isinstance(line, dict) and line.keys() - {"tags"} == _KEYS


def _digest(asked: Asked) -> str:
    """The SHA-256 of everything that decides the result of a task."""
    from compiler.frontend.external import files_of_weights

    entry, made = asked.entry, hashlib.sha256()
    facts: list[Any] = [_versions(), asked.what, entry.name, entry.tolerance, [case.name for case in entry.cases]]
    facts += [asdict(task) for task in entry.tasks]
    facts += [asked.compiling.options, [module.digest for module in imported_modules()]]
    made.update(json.dumps(facts).encode())
    for path in (*entry.files, *sorted(files_of_weights(entry.path))):
        made.update(_digest_of_file(path))
    return made.hexdigest()


def _digest_of_file(path: Path) -> bytes:
    made = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                made.update(chunk)
    except OSError as error:
        return type(error).__name__.encode()
    return made.digest()


@functools.cache
def _versions() -> list[str]:
    """The compiler's own files, the version of onnxruntime, and the instruction set that the user chose."""
    package = Path(__file__).parents[1]
    own = hashlib.sha256()
    for path in sorted(each for each in package.rglob("*") if each.suffix in (".py", ".so")):
        own.update(_digest_of_file(path))
    try:
        reference = importlib.metadata.version("onnxruntime")
    except importlib.metadata.PackageNotFoundError:
        reference = ""
    return [own.hexdigest(), reference, os.environ.get("CANDLE_PLAN_ISA", "")]
