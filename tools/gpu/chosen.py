"""Runs one plan, named `section/name`, for profilers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import compiler
from gpu import drawn, files
from gpu.agreement import compared, refuse_large
from gpu.files import Model
from gpu.process import Setting
from gpu.results import Result

PROFILED = (
    "networks/resnet50-b32",
    "networks/bert_base-b32",
    "networks/unet-b1",
    "networks/hifigan-b1",
    "trained/yolox_nano",
)
"""Five plans that spend their time in different kernels."""
RUNS = 3


def names(setting: Setting) -> list[str]:
    """The names of all plans."""
    sections = ("trained", "networks", "sanitized")
    return [f"{section}/{name}" for section in sections for name in files.names(setting.bundle, section)]


def profiled(setting: Setting) -> list[str]:
    """The plans of `PROFILED` in the bundle; without any, the first plan of the bundle."""
    there = names(setting)
    return [name for name in PROFILED if name in there] or there[:1]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Runs a plan a few times, or the plans of a group in order."""
    section, _, which = name.partition("/")
    model = files.read(setting.bundle, section, which)
    for each in model.get("group", [model]):
        session, case = opened(each, setting)
        found = compared(each, session, [case])
        words = (f"{each['name']} is {found['verdict']}", found.get("note"))
        yield {**found, "note": "; ".join(filter(None, words))}
        if found["verdict"] not in ("equal", "near"):
            return
        for _ in range(0 if "group" in model else RUNS):
            session.run(case)


def opened(model: Model, setting: Setting) -> tuple[compiler.Session, dict[str, Any]]:
    """A session of a plan on the device, with its first case."""
    refuse_large(model, setting)
    if "drawn" not in model:
        return compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1), model["cases"][0]
    session = compiler.load(compiler.Plan(drawn.filled(model)), device=setting.device, threads=1)
    return session, drawn.inputs(model["inputs"])


def chosen(name: str, setting: Setting) -> tuple[compiler.Session, dict[str, Any]]:
    """A session of a plan by `section/name`, with its first case."""
    section, _, which = name.partition("/")
    return opened(files.read(setting.bundle, section, which), setting)
