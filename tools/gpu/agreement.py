"""Whether a device's results are the processor's, which the bundle holds."""

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
"""Elements of an output that the bundle holds whole; of a larger one it holds about as many, evenly spread."""


def sampled(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs as the bundle holds them; the shape of each one that is not whole is an output of its own."""
    kept: dict[str, Any] = {}
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and value.size > MOST:
            kept[f"shape of {name}"] = np.array(value.shape)
            value = value.reshape(-1)[:: value.size // MOST | 1].copy()
        kept[name] = value
    return kept


def compared(model: Model, session: compiler.Session, cases: list[dict[str, Any]]) -> Result:
    """How far the results of all cases are from those of the processor.

    `off` is a part of the tolerance. It is None where that is no number, and the note says why: an output has another
    shape or dtype, NaN in other places, or differs where no difference is allowed.
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
    """Whether an output's difference is no part of the tolerance."""
    return not math.isfinite(output.share)


def is_near(model: Model, number: int, found: dict[str, Any]) -> bool:
    """Whether a result is as near to onnxruntime's as the processor's has to be: all three are rounded."""
    reference = model.get("reference", [])
    return number < len(reference) and compare(reference[number], found, model["allowed"]).equal


def hosted(session: compiler.Session) -> Result:
    """The reasons for which the host runs steps, with their numbers, and the ops without a kernel."""
    steps = session.host_steps
    missing = sorted({step.op for step in steps if step.host == "no_kernel"})
    return {"hosted": dict(Counter(str(step.host) for step in steps)), "missing": missing}


@functools.cache
def held(device: str, setting: Setting) -> compiler.Session:
    """A session that keeps the device open, so that the next ones find it open."""
    small = read(setting.bundle, "small", names(setting.bundle, "small")[0])
    return compiler.load(compiler.Plan(small["plan"]), device=device, threads=1)


def refuse_large(model: Model, setting: Setting) -> None:
    """Leaves out what the emulator would compute for hours.

    Raises:
        LeftOut: the device is the emulator, and the model is large.
    """
    if setting.device == "emulator" and model.get("is_large"):
        raise LeftOut("not run: it is too large for the emulator")
