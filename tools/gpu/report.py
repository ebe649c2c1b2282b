"""The page and the JSON file of one command. Both are complete after every step, wherever the command ends."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.results import Result, finite, is_wrong

LARGEST = 12 << 20
"""The limit of all results of a command, in bytes. A result beyond it keeps only its verdict."""
PART = ".cuda-check.part"
"""The name of the temporary file. At most one such file remains, whenever a command ends."""
PAUSE = 0.25
"""The least seconds between two writes of a section's results. Each write is complete."""

Render = Callable[["Part"], Iterable[str]]


@dataclass
class Part:
    """The results of a section so far, and the lines that show them."""

    title: str
    render: Render
    results: dict[str, Result] = field(default_factory=dict)
    planned: list[str] = field(default_factory=list)
    seconds: float | None = None
    """The duration; `None` before the section's end."""
    is_begun: bool = False

    @property
    def state(self) -> str:
        """The state of the section: `done`, `begun` or `not run`."""
        return "done" if self.seconds is not None else "begun" if self.is_begun else "not run"

    @property
    def wrong(self) -> int:
        """The number of marks ✗."""
        marks = sum(is_wrong(result) for result in self.results.values())
        return marks + (self.seconds is None)

    @property
    def missing(self) -> str:
        """The reason why an unfinished section lacks results."""
        missing = len(self.planned) - len(self.results)
        what = f"the command ended with {missing} of {len(self.planned)} checks to do" if self.is_begun else ""
        return f"not run: {what or 'the command ended before'}"

    def text(self) -> str:
        """The section of the page."""
        lines = list(self.render(self)) if self.results else []
        if self.seconds is not None:
            lines += ["", f"This took {self.seconds:.0f} s."]
        else:
            lines += ["", f"✗ {self.missing}"]
        return f"## {self.title}\n\n" + "\n".join(lines).strip()


def former(path: Path) -> Path:
    """The path of the former command's file, until every section of a command is done."""
    return path.with_suffix(f".previous{path.suffix}")


def is_whole(file: Path) -> bool:
    """Whether a JSON file exists, and belongs to a command whose sections are all done."""
    try:
        return all(section["state"] == "done" for section in json.loads(file.read_text())["sections"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


class Report:
    """The results of a command, in two files of a folder. The former command's files stay until these are complete."""

    def __init__(self, folder: Path, command: str, heading: list[str], parts: Iterable[Part]) -> None:
        self.parts = list(parts)
        self._folder, self._command, self._heading = folder, command, heading
        self._bytes, self._written = 0, 0.0
        self._sizes: dict[tuple[str, str], int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(f"{PART}*"):
            stale.unlink(missing_ok=True)
        self._keep_former()

    def _keep_former(self) -> None:
        """Renames the former files. Complete ones stay until there are new complete ones."""
        if is_whole(former(self.file)) and not is_whole(self.file):
            return
        for path in (self.page, self.file):  # the page first, because the JSON file decides whether to rename
            if path.exists():
                path.replace(former(path))

    @property
    def file(self) -> Path:
        """The JSON file."""
        return self._folder / f"cuda-{self._command}.json"

    @property
    def page(self) -> Path:
        """The page."""
        return self._folder / f"cuda-{self._command}.md"

    @property
    def wrong(self) -> int:
        """The number of checks and sections marked ✗."""
        return sum(part.wrong for part in self.parts)

    def begin(self, part: Part, planned: list[str]) -> None:
        """Records the start of a section, and its checks."""
        part.is_begun, part.planned = True, planned
        self.save()

    def put(self, part: Part, result: Result) -> None:
        """Adds a result, which replaces a partial result of the same name, and writes both files."""
        which, result = (part.title, result["name"]), finite(result)
        others = self._bytes - self._sizes.get(which, 0)
        if others + len(json.dumps(result)) > LARGEST:
            kept = ("name", "verdict", "note")
            result = {key: result[key] for key in kept if key in result} | {"shortened": True}
        self._sizes[which] = len(json.dumps(result))
        self._bytes = others + self._sizes[which]
        part.results[result["name"]] = {key: value for key, value in result.items() if value is not False}
        if time.monotonic() - self._written >= PAUSE:
            self.save()

    def end(self, part: Part, seconds: float) -> None:
        """Records the end of a section. The last one completes the files, and removes the former ones."""
        part.seconds = seconds
        self.save()
        if all(each.state == "done" for each in self.parts):
            for path in (self.file, self.page):
                former(path).unlink(missing_ok=True)

    def save(self) -> None:
        """Writes both files, each atomically."""
        self._write(self.file, json.dumps(self.data(), indent=1, allow_nan=False))
        self._write(self.page, self.text())
        self._written = time.monotonic()

    def data(self) -> dict[str, Any]:
        """The results as JSON data."""
        sections = [
            {
                "title": part.title,
                "state": part.state,
                "seconds": part.seconds,
                "planned": part.planned,
                "results": list(part.results.values()),
            }
            for part in self.parts
        ]
        return {"call": self._command, "heading": self._heading, "wrong": self.wrong, "sections": sections}

    def text(self) -> str:
        """The text of the page."""
        heading = [f"# On a GPU: {self._command}", *self._heading]
        return "\n\n".join([*heading, *(part.text() for part in self.parts)]) + "\n"

    def _write(self, path: Path, text: str) -> None:
        """Replaces a file atomically. The fixed name of the temporary file leaves at most one behind."""
        beside = self._folder / PART
        beside.write_bytes(text.encode())
        os.replace(beside, path)  # noqa: PTH105 (Path.replace returns the path)
