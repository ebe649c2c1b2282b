"""The three calls: their sections, the time that each section has, and how a section runs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gpu import page
from gpu.process import PATIENCE, Setting, Work
from gpu.report import Part, Render, Report
from gpu.results import Result, one_line

Say = Callable[[str], None]


@dataclass(frozen=True)
class Section:
    """A part of a call: a module of this package, its share of the time, and how many checks share a process."""

    title: str
    work: str
    seconds: float
    render: Render = page.bullets
    together: int = 1
    patience: float = PATIENCE
    is_optional: bool = False
    """Whether a check that finds no time is left out, and not marked ✗."""


@dataclass(frozen=True)
class Call:
    """Sections in their order; `stops` at the first check that fails."""

    name: str
    sections: tuple[Section, ...]
    stops: bool = False

    @property
    def seconds(self) -> float:
        """What all sections may take."""
        return sum(section.seconds for section in self.sections)


SPLIT = {
    "run, ms": lambda result: result["run"],
    "submit": lambda result: result["split"]["submit_ms"],
    "upload": lambda result: result["split"]["upload_ms"],
    "device": lambda result: result["split"]["device_ms"],
    "download": lambda result: result["split"]["download_ms"],
    "launches": lambda result: result["split"]["launches"],
    "waits": lambda result: result["split"]["waits"],
    "bytes up": lambda result: result["split"]["bytes_up"],
    "bytes down": lambda result: result["split"]["bytes_down"],
    "split by": lambda result: result["split"]["by"],
}
"""A run's time, and where it goes."""
PEERS = {
    "ours, from the host": lambda result: result["times"]["ours, host"],
    "ours, resident": lambda result: result["times"]["ours, resident"],
    "eager f32": lambda result: result["times"]["eager, f32, resident"],
    "graph f32": lambda result: result["times"]["graph, f32, resident"],
    "eager TF32": lambda result: result["times"]["eager, tf32, resident"],
    "graph TF32": lambda result: result["times"]["graph, tf32, resident"],
    "eager half": lambda result: result["times"]["eager, half, resident"],
    "graph half": lambda result: result["times"]["graph, half, resident"],
    "eager f32, from the host": lambda result: result["times"]["eager, f32, host"],
    "÷ eager f32": lambda result: (
        result["times"]["ours, host"]["median"] / result["times"]["eager, f32, host"]["median"]
    ),
    "not timed": lambda result: result["untimed"],
}
"""Our time beside PyTorch's, in ms."""

SMOKE = Call(
    "smoke",
    (
        Section("The first result", "opening", 40, page.bullets, patience=40),
        Section("The machine", "machine", 15),
        Section(
            "Backend paths",
            "paths",
            25,
            page.table(
                {"off, of the tolerance": lambda result: result["off"], "first run, s": lambda result: result["first"]}
            ),
            together=100,
        ),
        Section("Copies", "copies", 15, page.table({"GB/s by size": lambda result: result["rates"]}), is_optional=True),
        Section("Products", "products", 20, page.table({"TFLOP/s": lambda result: result["teraflops"]})),
    ),
    stops=True,
)
COMPARE = Call(
    "compare",
    (
        Section("Operators", "operators", 85, page.summary, together=10_000),
        Section(
            "Trained models",
            "trained",
            100,
            page.table(
                {
                    "inputs": lambda result: result["cases"],
                    "off, of the tolerance": lambda result: result["off"],
                    "loading, s": lambda result: result["loading"],
                    **SPLIT,
                    "processor, ms": lambda result: result["processor"],
                    "host steps": lambda result: result["hosted"],
                },
                "✓ equals the processor's result within the tolerance. ≈ is as near to onnxruntime's result as the "
                "processor's has to be. Times are medians, with half the distance of the quartiles.",
            ),
        ),
        Section("The device", "device", 40, together=100),
        Section(
            "Networks",
            "networks",
            210,
            page.table(
                {"off, of the tolerance": lambda result: result["off"], **SPLIT, **PEERS},
                "Weights are noise. Resident times begin and end on the device, the others in host memory. All runs of "
                "a line take turns in one process.",
            ),
            patience=90,
        ),
        Section(
            "torch.compile",
            "compiled",
            105,
            page.table({"ms": lambda result: result["times"], "not timed": lambda result: result["untimed"]}),
            patience=100,
            is_optional=True,
        ),
    ),
)
TUNE = Call(
    "tune",
    (
        Section(
            "Kernels by name",
            "kernels",
            60,
            page.table({"µs a run, by kernel": lambda result: result["shown"]}),
            patience=45,
        ),
        Section(
            "Driver calls",
            "driver_calls",
            40,
            page.table({"calls a run": lambda result: result["calls"]}),
            is_optional=True,
        ),
        Section(
            "Convolutions",
            "convolutions",
            130,
            page.table(
                {
                    "form": lambda result: result["form"],
                    "ours, µs": lambda result: result["ours"],
                    "cuDNN f32, µs": lambda result: result["cudnn_f32"],
                    "cuDNN TF32, µs": lambda result: result["cudnn_tf32"],
                    "÷ cuDNN f32": lambda result: result["ours"] / result["cudnn_f32"],
                    "TFLOP/s": lambda result: result["teraflops"],
                },
            ),
            together=1000,
        ),
        Section("Nsight Compute", "counters", 100, page.table({"figures": lambda result: result["figures"]})),
        Section(
            "compute-sanitizer",
            "sanitizer",
            200,
            page.table({"plans": lambda result: result["summary"]}),
            patience=200,
        ),
    ),
)
CALLS = {call.name: call for call in (SMOKE, COMPARE, TUNE)}


def perform(call: Call, setting: Setting, report: Report, seconds: float, say: Say) -> bool:
    """Runs a call's sections; each has its share of the time, and what those before it left. False where it stopped."""
    deadline = time.monotonic()
    for section, part in zip(call.sections, report.parts, strict=True):
        deadline += section.seconds * seconds / call.seconds
        say(f"\n## {section.title}\n")
        start = time.monotonic()
        has_failed = False
        for result in every_result(section, replace(setting, deadline=deadline), report, part):
            report.put(part, result)
            if not result.get("partial"):
                say(f"{result['name']}: {result['verdict']} {result.get('note', '')}".rstrip())
            has_failed |= result["verdict"] in ("failed", "different") and not result.get("partial", False)
            if has_failed and call.stops:
                break
        report.end(part, time.monotonic() - start)
        if has_failed and call.stops:
            return False
    return True


def every_result(section: Section, setting: Setting, report: Report, part: Part) -> Iterator[Result]:
    """The results of a section; of what has none, why."""
    try:
        names = importlib.import_module(f"gpu.{section.work}").names(setting)
    except Exception as error:  # the other sections still run
        yield {"name": section.title, "verdict": "failed", "note": one_line(error)}
        return
    report.begin(part, names)
    work = Work(section.work, names, setting, section.together, section.patience)
    yield from work.results()
    for name in work.left:
        if section.is_optional:
            yield {"name": name, "verdict": "left out", "note": f"not run: {work.reason}"}
        else:
            yield {"name": name, "verdict": "not run", "note": work.reason}


def parts(call: Call) -> list[Part]:
    """The parts of a call's report."""
    return [Part(section.title, section.render) for section in call.sections]


def marked(report: Report) -> str:
    """How many lines are marked ✗; empty where none is."""
    return f"{report.wrong} {'line is' if report.wrong == 1 else 'lines are'} marked ✗" if report.wrong else ""
