"""The cases of `candlec bench`: the named files, and the models of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments

if TYPE_CHECKING:
    from compiler import Plan
    from compiler.bench.engines import Case

__all__ = ["Cases", "on_device", "own_cases", "zoo_cases"]

Cases = list[tuple[str, Callable[[], "AbstractContextManager[Case]"]]]
"""Names, each with a function that compiles the model and returns a context manager, which holds the plan's file."""


def own_cases(
    files: tuple[Path, ...], against: tuple[str, ...] | None, inputs: tuple[str, ...], sizes: dict[str, int]
) -> Cases:
    """The plans, each with its model if the user also named it; without any plan, the models."""
    import compiler
    from compiler.bench.saved import saved

    def opened(name: str, plan: Plan | None, file: Path, model: Path | None) -> AbstractContextManager[Case]:
        known = compiler.compile(file) if plan is None else plan
        given = arguments.given_inputs(known.inputs, inputs, sizes)
        return saved(name, known, given, model)

    plans = {file: compiler.Plan.load(file) for file in files if arguments.is_plan(file)}
    models = [file for file in files if file not in plans]
    if not plans:
        return [(_name(model, files), partial(opened, _name(model, files), None, model, model)) for model in models]
    pairs = _pairs(plans, models)
    for file, found in pairs.items():
        if found is None and against:
            raise click.UsageError(f"--against {','.join(against)} needs the model of {file}: name it too")
    return [
        (_name(file, files), partial(opened, _name(file, files), plan, file, pairs[file]))
        for file, plan in plans.items()
    ]


def _pairs(plans: dict[Path, Plan], models: list[Path]) -> dict[Path, Path | None]:
    """The model of each plan; `None` if it is not among these."""
    pairs = {
        file: next((model for model in models if arguments.is_of(plan, model)), None) for file, plan in plans.items()
    }
    for model in models:
        if model not in pairs.values():
            raise click.UsageError(f"none of these plans was compiled from {model}: time the model by itself")
    return pairs


def _name(file: Path, files: tuple[Path, ...]) -> str:
    """A name that distinguishes a file from the others."""
    alike = [other for other in files if other.stem == file.stem and other.suffix == file.suffix]
    return file.stem if len(alike) == 1 else str(file)


def zoo_cases(zoo: Path | None, only: tuple[str, ...], cache: Path | None) -> Cases:
    """The models of the folder, with the shapes of their first cases. Downloads are in the cache."""
    from compiler.cli.folder import entries_of
    from compiler.zoo.timing import opened

    entries = entries_of(zoo, only, cache=cache) if zoo else []
    return [(entry.name, partial(opened, entry)) for entry in entries]


def on_device(device: str, cases: Cases) -> Cases:
    """The same cases, with plans that run on a device."""

    @contextmanager
    def placed(opened: Callable[[], AbstractContextManager[Case]]) -> Iterator[Case]:
        with opened() as case:
            yield replace(case, device=device)

    return [(name, partial(placed, opened)) for name, opened in cases]
