"""The sections of the page that tools/cuda_check.py writes: what is run, and what is said of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cuda_files import Model
from cuda_process import Work, command, printed
from cuda_results import GOOD, MARKS, Result
from cuda_work import models

AT_ONCE = 4
"""Processes under compute-sanitizer."""


@dataclass(frozen=True)
class Line:
    """A line of the page; a wrong one tells of what is not as it should be, or was planned and did not run."""

    text: str
    is_wrong: bool = False


@dataclass(frozen=True)
class Setting:
    """Where a section runs, and until when."""

    bundle: Path
    device: str
    deadline: float

    def work(self, section: str) -> Work:
        """What there is to do in a section of the bundle."""
        return Work(section, self.bundle, self.device, self.deadline)


def zoo(setting: Setting) -> Iterator[Line]:
    """Every model of the zoo against the processor, and what loading it and a run take."""
    heads = ("model", "inputs", "result", "off, of what is allowed", "loading, s", "ms")
    yield from table(*heads, "on the processor, 1 thread", "host steps")
    work = setting.work("zoo")
    for result in every_result(work):
        yield row(result, *(zoo_cells(result) if "ms" in result else [""] * 5), counted=True)
    yield from said(
        "",
        "✓ equals the processor's result within the tolerance; ≈ is as near to onnxruntime's as that has to be.",
        "Kernels that nothing ran before are compiled in a model's first run, and no part of these times.",
    )


def zoo_cells(result: Result) -> list[str]:
    """What the table says of a model that ran, beside its verdict."""
    hosted = ", ".join(f"{count} {reason}" for reason, count in result["hosted"].items())
    times = [f"{each:.2f}" for each in result["ms"]]
    return [f"{result['off']:.2g}", f"{result['loading']:.3f}", *times, hosted]


def device(setting: Setting) -> Iterator[Line]:
    """What only a GPU has."""
    yield from map(bullet, every_result(setting.work("device")))


def operators(setting: Setting) -> Iterator[Line]:
    """Every test of an operator against the processor."""
    work = setting.work("operators")
    found = list(work.results())
    wrong = [result for result in found if is_wrong(result)]
    yield Line(f"{len(found) - len(wrong)} of {len(work.names)} tests of operators equal the processor's results.")
    if work.left:
        wrong.append({"name": f"{len(work.left)} tests", "verdict": "not run", "note": work.reason})
    yield from said(*[""] * bool(wrong))
    yield from (bullet(result) for result in wrong)
    missing = Counter(op for result in found for op in result.get("missing", ()))
    named = ", ".join(f"{op} ({number})" for op, number in missing.most_common())
    yield from said("", f"Steps without a kernel, by op and the number of tests: {named or 'none'}.")


def beside_torch(setting: Setting) -> Iterator[Line]:
    """Architectures beside the same network in PyTorch."""
    work = setting.work("architectures")
    if not work.names:
        yield Line("✗ not run: the bundle has no networks", is_wrong=True)
        return
    yield from table("network", "result", "ms, with input and output brought over", "PyTorch, ms", "÷ PyTorch")
    for result in every_result(work):
        ours, theirs = result.get("ms", (0, 0))
        yield row(result, *([f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}"] if theirs else [""] * 3))
    yield from said("", "PyTorch runs eagerly in float32; its time is with its output, its input being there.")


def sanitizer(setting: Setting) -> Iterator[Line]:
    """Some models under compute-sanitizer, which takes some hundred times as long."""
    program = shutil.which("compute-sanitizer", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    planned = models("sanitized", setting.bundle)
    if program is None and setting.device == "emulator":
        yield Line("– compute-sanitizer is for GPUs.")
        return
    if program is None or not planned:
        why = "the bundle has no models for it" if program else "compute-sanitizer is not here"
        yield Line(f"✗ not run: {why}", is_wrong=True)
        return
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for result in threads.map(lambda model: sanitized(program, model, setting), planned):
            yield bullet(result)


def sanitized(program: str, model: Model, setting: Setting) -> Result:
    """What compute-sanitizer says of a model."""
    tool, left = model["sanitizer"], setting.deadline - time.monotonic()
    result = {"name": f"{model['name']}, {tool}"}
    if left <= 0:
        return {**result, "verdict": "not run", "note": "time was up"}
    work = [*command("sanitized", setting.bundle, setting.device), "--only", model["name"]]
    try:
        told = printed([program, "--tool", tool, *work], left)
    except TimeoutError:
        return {**result, "verdict": "not run", "note": f"it took more than the {left:.0f} s that were left"}
    return {**result, **sanitizer_verdict(told)}


def sanitizer_verdict(told: str) -> Result:
    """What a run under compute-sanitizer printed, as a result."""
    if "Device not supported" in told:
        return {"verdict": "not run", "note": "compute-sanitizer does not support the device"}
    summary = next((line.strip("= ") for line in told.splitlines() if "SUMMARY:" in line), None)
    if summary is None:
        return {"verdict": "not run", "note": " ".join(told.split())[-300:] or "it said nothing"}
    is_clean = re.search(r"SUMMARY: 0 (errors|hazards)", summary) is not None
    found = next((json.loads(line) for line in told.splitlines() if line.startswith("{")), None)
    if found is None or is_wrong(found):
        return {"verdict": "failed", "note": f"{summary}; {verdict(found) if found else 'the model did not run'}"}
    return {"verdict": "equal" if is_clean else "different", "note": summary}


def every_result(work: Work) -> Iterator[Result]:
    """The results; of what has none, why."""
    yield from work.results()
    yield from ({"name": name, "verdict": "not run", "note": work.reason} for name in work.left)


def table(*heads: str) -> Iterator[Line]:
    """The head of a table."""
    yield from said(f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}")


def row(result: Result, *cells: str, counted: bool = False) -> Line:
    """A line of a table: the name, the number of inputs where these are `counted`, the verdict, and what follows it."""
    inputs = [str(result.get("cases", ""))] if counted else []
    return Line(f"| {' | '.join([result['name'], *inputs, verdict(result), *cells])} |", is_wrong(result))


def bullet(result: Result) -> Line:
    """A line of a list."""
    mark, _, rest = verdict(result).partition(" ")
    colon = ": " if rest else ""
    return Line(f"- {mark} {result['name']}{colon}{rest}", is_wrong(result))


def verdict(result: Result) -> str:
    """The mark of a result, with what there is to say."""
    is_far = result["verdict"] == "different" and "off" in result
    off = f"off by {result['off']:.2g} of what is allowed" if is_far else ""
    return f"{MARKS[result['verdict']]} {result.get('note', off)}".rstrip()


def is_wrong(result: Result) -> bool:
    """Whether a result counts for the exit code."""
    return result["verdict"] not in GOOD


def said(*texts: str) -> Iterator[Line]:
    """Lines that tell of nothing wrong."""
    yield from (Line(text) for text in texts)
