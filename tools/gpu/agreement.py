"""Comparison of a device's results with the CPU's, which the bundle holds."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

import compiler
from compiler.accuracy.compare import Comparison, compare
from gpu.files import Model, names, read
from gpu.process import Setting
from gpu.results import LeftOut, Result

MOST = 1 << 13
"""The largest number of elements of an output in the bundle. A larger output is sampled at even distances."""


def sampled(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs as the bundle stores them. The shape of a sampled output becomes a separate output."""
    kept: dict[str, Any] = {}
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and value.size > MOST:
            kept[f"shape of {name}"] = np.array(value.shape)
            value = value.reshape(-1)[:: value.size // MOST | 1].copy()
        kept[name] = value
    return kept


def compared(model: Model, session: compiler.Session, cases: list[dict[str, Any]]) -> Result:
    """The largest difference of all cases from the CPU's results.

    `off` is a fraction of the tolerance. It is None if there is no such number, and the note gives the reason: an
    output has another shape or dtype, NaN in other places, or differs although no difference is allowed.
    """
    verdict, off = "equal", 0.0
    reasons: dict[str, None] = {}
    for number, case in enumerate(cases):
        found = sampled(session.run(case))
        report = compare(model["expected"][number], found, model["tolerance"])
        off = max(off, report.worst)
        reasons |= {f"{each.name}: {each.problem or each.note}": None for each in report.outputs if is_infinite(each)}
        if not report.equal:
            verdict = "near" if is_near(model, number, found) and verdict != "different" else "different"
    found = {"verdict": verdict, "off": None if reasons else off, "cases": len(cases)}
    return found | ({"note": ", ".join(reasons)} if reasons else {})


def is_infinite(output: Comparison) -> bool:
    """Whether an output's difference is not a finite fraction of the tolerance."""
    return not math.isfinite(output.share)


def is_near(model: Model, number: int, found: dict[str, Any]) -> bool:
    """Whether a result is as close to onnxruntime's as the CPU's must be. Rounding affects all three."""
    reference = model.get("reference", [])
    return number < len(reference) and compare(reference[number], found, model["allowed"]).equal


def hosted(session: compiler.Session) -> Result:
    """The numbers of steps on the host by reason, and the ops without a kernel."""
    steps = session.host_steps
    missing = sorted({step.op for step in steps if step.host == "no_kernel"})
    return {"hosted": dict(Counter(str(step.host) for step in steps)), "missing": missing}


@functools.cache
def held(device: str, setting: Setting) -> compiler.Session:
    """A session that keeps the device open for the following sessions."""
    small = read(setting.bundle, "small", names(setting.bundle, "small")[0])
    return compiler.load(compiler.Plan(small["plan"]), device=device, threads=1)


def refuse_large(model: Model, setting: Setting) -> None:
    """Skips a model that the emulator would run for hours.

    Raises:
        LeftOut: the device is the emulator, and the model is large.
    """
    if setting.device == "emulator" and model.get("is_large"):
        raise LeftOut("not run: it is too large for the emulator")
