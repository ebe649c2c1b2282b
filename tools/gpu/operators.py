"""The onnx package's tests of operators, on a device."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import compiler
from gpu.agreement import compared, held, hosted
from gpu.files import Model, about, read
from gpu.page import summary
from gpu.process import Setting
from gpu.results import Result

TOGETHER = 100
"""The number of tests in one file of the bundle."""

lines = summary


def names(setting: Setting) -> list[str]:
    """The names of the tests."""
    tests: list[str] = about(setting.bundle)["tests"]
    return tests


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Compares the outputs of one test, and lists the steps without a kernel."""
    held(setting.device, setting)
    number = _numbers(setting)[name]
    model = _chunk(setting.bundle, f"{number // TOGETHER:03}")["tests"][number % TOGETHER]
    session = compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1)
    found = compared(model, session, model["cases"])
    found |= {"missing": hosted(session)["missing"]}
    yield {key: value for key, value in found.items() if value and key != "cases"}


@functools.cache
def _numbers(setting: Setting) -> dict[str, int]:
    return {name: number for number, name in enumerate(names(setting))}


@functools.lru_cache(maxsize=1)
def _chunk(bundle: Path, name: str) -> Model:
    return read(bundle, "operators", name)
