"""The three commands: their sections, and the time limit and execution of each section."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gpu.process import PATIENCE, TIME_WAS_UP, Setting, Work
from gpu.report import Part, Report
from gpu.results import Result, one_line, told

Say = Callable[[str], None]


@dataclass(frozen=True)
class Section:
    """A part of a command: a module of this package, its time limit, and the number of checks that share a process."""

    title: str
    work: str
    seconds: float
    together: int = 1
    patience: float = PATIENCE
    is_optional: bool = False
    """Whether a check without remaining time is left out, instead of marked ✗."""


@dataclass(frozen=True)
class Command:
    """Sections in order. With `stops`, the command ends at the first failed check."""

    name: str
    sections: tuple[Section, ...]
    stops: bool = False

    @property
    def seconds(self) -> float:
        """The time limit of all sections together."""
        return sum(section.seconds for section in self.sections)


SMOKE = Command(
    "smoke",
    (
        Section("The first result", "opening", 40, patience=40),
        Section("The machine", "machine", 15),
        Section("Backend paths", "paths", 25, together=100),
        Section("Copies", "copies", 15, is_optional=True),
        Section("Products", "products", 20),
    ),
    stops=True,
)
COMPARE = Command(
    "compare",
    (
        Section("Operators", "operators", 85, together=10_000),
        Section("Trained models", "trained", 100),
        Section("The device", "device", 40, together=100),
        Section("Networks", "networks", 210, patience=90),
        Section("torch.compile", "compiled", 105, patience=100, is_optional=True),
    ),
)
TUNE = Command(
    "tune",
    (
        Section("Kernels by name", "kernels", 60, patience=45),
        Section("Driver calls", "driver_calls", 50, is_optional=True),
        Section("Convolutions", "convolutions", 160),
        Section("Nsight Compute", "counters", 100),
        Section("compute-sanitizer", "sanitizer", 175, patience=175),
    ),
)
COMMANDS = {command.name: command for command in (SMOKE, COMPARE, TUNE)}


def perform(command: Command, setting: Setting, report: Report, seconds: float, say: Say) -> bool:
    """Runs a command's sections, each with its time and the time that earlier ones left.

    Returns whether it completed.
    """
    deadline = time.monotonic()
    is_whole = True
    for section, part in zip(command.sections, report.parts, strict=True):
        if not is_whole:
            say(f"\n✗ {section.title}: {part.missing}")
            continue
        deadline += section.seconds * seconds / command.seconds
        say(f"\n## {section.title}\n")
        start = time.monotonic()
        found = every_result(section, replace(setting, deadline=deadline), report, part)
        is_whole = shown(found, report, part, say, command.stops)
        report.end(part, time.monotonic() - start)
    return is_whole


def shown(results: Iterator[Result], report: Report, part: Part, say: Say, stops: bool) -> bool:
    """Reports and prints the results of a section. Returns `False` if one failed and the command stops there."""
    late: list[Result] = []
    for result in results:
        report.put(part, result)
        if result.get("partial"):
            continue
        if is_late(result):
            late.append(result)
            continue
        say(told(result))
        if stops and result["verdict"] in ("failed", "different"):
            return False
    if late:
        say(told({**late[0], "name": named(late)}))
    return True


def named(results: list[Result]) -> str:
    """The name of a single result, or the number of several."""
    return results[0]["name"] if len(results) == 1 else f"{len(results)} checks"


def is_late(result: Result) -> bool:
    """Whether a check did not run because the time was up."""
    late = {"not run": TIME_WAS_UP, "left out": f"not run: {TIME_WAS_UP}"}
    return result["verdict"] in late and result.get("note") == late[result["verdict"]]


def every_result(section: Section, setting: Setting, report: Report, part: Part) -> Iterator[Result]:
    """The results of a section; for a check without a result, the reason."""
    try:
        names = importlib.import_module(f"gpu.{section.work}").names(setting)
    except Exception as error:  # the other sections still run
        yield {"name": section.title, "verdict": "failed", "note": one_line(error)}
        return
    report.begin(part, names)
    work = Work(section.work, names, setting, section.together, section.patience)
    is_planned = not section.is_optional and setting.device != "emulator"  # the emulator is far slower than a GPU
    yield from (each if is_planned else without_time(each) for each in work.results())
    for name in work.left:
        late = {"name": name, "verdict": "not run", "note": work.reason}
        yield late if is_planned else without_time(late)


def without_time(result: Result) -> Result:
    """The result as left out, instead of marked ✗, if the time was up."""
    if not is_late(result):
        return result
    return {**result, "verdict": "left out", "note": f"not run: {TIME_WAS_UP}"}


def parts(command: Command) -> list[Part]:
    """The parts of a command's report."""
    return [Part(section.title, importlib.import_module(f"gpu.{section.work}").lines) for section in command.sections]


def marked(report: Report) -> str:
    """The number of checks and sections marked ✗, as text; an empty string if there is none."""
    return f"{report.wrong} {'result is' if report.wrong == 1 else 'results are'} marked ✗" if report.wrong else ""
