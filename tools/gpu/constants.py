"""New limits for `constants.rs`, from the times that the section on convolutions has written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from gpu.convolutions import timed_forms
from gpu.fit import fitted, source
from gpu.forms import Constants, form_of
from gpu.page import bullets
from gpu.process import Setting
from gpu.report import Part
from gpu.results import Result, unavailable
from gpu.shapes import SHAPES

NAME = "the limits in constants.rs"
PAGE = "cuda-tune.json"


def names(setting: Setting) -> list[str]:
    """The only check."""
    return [NAME]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """The constants, the means before and after, and the shapes whose chosen form changes."""
    sections = json.loads((setting.out / PAGE).read_text())["sections"]
    of_forms = {result["name"]: result for section in sections for result in section["results"]}
    times = {shape: found for shape in SHAPES if (found := timed_forms(of_forms, shape))}
    fit = fitted(times, Constants())
    if fit is None:
        raise unavailable(setting.device, "no form of a convolution was timed")
    moved = {
        shape.name: [before.name, after.name]
        for shape in times
        if (before := form_of(shape, Constants())) != (after := form_of(shape, fit.constants))
    }
    told = f"{fit.before:.3f} of the best form's time before, {fit.after:.3f} with these, over {fit.shapes} shapes"
    yield {"note": told, "constants": asdict(fit.constants), "before": fit.before, "after": fit.after, "moved": moved}


def lines(part: Part) -> Iterator[str]:
    """The means, the lines for `constants.rs`, and the shapes whose chosen form changes."""
    yield from bullets(part)
    for result in part.results.values():
        if "constants" in result:
            yield from ("", "```rust", *source(Constants(**result["constants"])), "```", "")
            yield from (f"- {shape}: {before} → {after}" for shape, (before, after) in result["moved"].items())
