"""The split of a run's time into submitting work, uploads, the device, and downloads.

`SOURCES` are the functions that measure it, most precise first. Each returns the same fields, or `None` if it does not
work on this machine. An unknown field is `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import compiler
from gpu.results import LeftOut, NotRun
from gpu.torch_cuda import torch_on
from gpu.trace import COPY, FILL, KERNEL, RUN, WAIT, Event, microseconds, of, traced

RUNS = 5
STREAM_WAITS = "Stream Wait Event"
"""CUPTI's name for a wait of a stream, which does not block the host."""

COLUMNS = {
    "submit": "split.submit_ms",
    "upload": "split.upload_ms",
    "device": "split.device_ms",
    "download": "split.download_ms",
    "launches": "split.launches",
    "waits": "split.waits",
    "bytes up": "split.bytes_up",
    "bytes down": "split.bytes_down",
    "by": "split.by",
}
"""The fields as columns of a page."""

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Split:
    """The averages of a run, and the source of the figures.

    `submit_ms` is the time from the run's start to the end of its last launch call. The other times are on the device.
    """

    by: str
    submit_ms: float | None = None
    upload_ms: float | None = None
    device_ms: float | None = None
    download_ms: float | None = None
    launches: float | None = None
    waits: float | None = None
    bytes_up: float | None = None
    bytes_down: float | None = None


def split(session: compiler.Session, case: Case, device: str) -> dict[str, Any]:
    """The split of a run, by the first source that works."""
    found = (source(session, case, device) for source in SOURCES)
    return asdict(next(each for each in found if each is not None))


def by_cupti(session: compiler.Session, case: Case, device: str) -> Split | None:
    """The split from the kernels and copies that CUPTI records through PyTorch's profiler."""
    try:
        torch = torch_on(device)
    except (NotRun, LeftOut):
        return None
    return of_trace(traced(torch, partial(session.run, case), RUNS), RUNS)


def of_trace(found: list[Event], runs: int) -> Split | None:
    """The split from the events of `runs` runs; `None` if CUPTI recorded no events of the device."""
    kernels = of(found, KERNEL)
    if not kernels:
        return None
    up, down = of(found, COPY, "HtoD"), of(found, COPY, "DtoH")
    return Split(
        "CUPTI",
        submit_ms=submitting(found, runs),
        upload_ms=microseconds(up) / runs / 1e3,
        device_ms=microseconds([*kernels, *of(found, FILL), *of(found, COPY, "DtoD")]) / runs / 1e3,
        download_ms=microseconds(down) / runs / 1e3,
        launches=len(kernels) / runs,
        waits=waiting(found, runs),
        bytes_up=sum(event.bytes for event in up) / runs,
        bytes_down=sum(event.bytes for event in down) / runs,
    )


def submitting(found: list[Event], runs: int) -> float | None:
    """The average of `submit_ms`; `None` if no launch call is recorded."""
    calls = [event for event in found if event.category in ("cuda_driver", "cuda_runtime") and "Launch" in event.name]
    spans = of(found, "user_annotation", RUN)
    lasting = [
        max(ends) - span.start
        for span in spans
        if (ends := [call.end for call in calls if span.start <= call.start <= span.end])
    ]
    return sum(lasting) / runs / 1e3 if len(lasting) == runs else None


def waiting(found: list[Event], runs: int) -> float | None:
    """The average number of the host's waits in a run; `None` if none is recorded, because every run has one."""
    spans = of(found, "user_annotation", RUN)
    waits = [event for event in of(found, WAIT) if event.name != STREAM_WAITS]
    seen = sum(any(span.start <= wait.start <= span.end for span in spans) for wait in waits)
    return seen / runs if seen else None


def by_steps(session: compiler.Session, case: Case, device: str) -> Split:
    """The split from the session's profile, which waits for every step. Its times include launches and waits.

    The last transfers are downloads, and all others count as uploads.
    """
    steps = [step for step in session.profile(case, RUNS) if step.depth == 0]
    last = max((number for number, step in enumerate(steps) if step.op != "Transfer"), default=-1)
    transfers = [(number, step) for number, step in enumerate(steps) if step.op == "Transfer"]
    there = [step for step in steps if step.op != "Transfer" and step.host is None]
    return Split(
        "step times",
        upload_ms=1e3 * sum(step.seconds for number, step in transfers if number < last) / RUNS,
        device_ms=1e3 * sum(step.seconds for step in there) / RUNS,
        download_ms=1e3 * sum(step.seconds for number, step in transfers if number > last) / RUNS,
        bytes_up=size(case),
        bytes_down=size(session.run(case)),
    )


def size(values: Case) -> float:
    """The number of bytes of the arrays."""
    return float(sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray)))


SOURCES: tuple[Callable[[compiler.Session, Case, str], Split | None], ...] = (by_cupti, by_steps)
