"""The cases of `candlec bench`: the named files, and the models of a folder; and the options that choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.compiling import compiling_option
from compiler.cli.custom import custom_option
from compiler.cli.folder import cache_option, entries_of, only_option
from compiler.cli.given import Given, input_option, size_option
from compiler.cli.grouped import grouped

if TYPE_CHECKING:
    from compiler import Plan
    from compiler.bench.engines import Case
    from compiler.zoo.compiling import Compiling

__all__ = ["Cases", "ChosenCases", "case_options"]

Cases = list[tuple[str, Callable[[], "AbstractContextManager[Case]"]]]
"""Names, each with a function that compiles the model and returns a context manager, which holds the plan's file."""


NOTHING, OTHERS = "nothing", ("onnxruntime", "openvino", "mnn")


def _against(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """`"onnxruntime,openvino"` → `("onnxruntime", "openvino")`."""
    if value is None:
        return None
    names = tuple(dict.fromkeys(value.split(",")))
    if names == (NOTHING,):
        return ()
    if unknown := [name for name in names if name not in OTHERS]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join((*OTHERS, NOTHING))}")
    return names


@dataclass(frozen=True)
class ChosenCases:
    """The models to time (named files, or the models of a folder), their inputs, and the other runtimes."""

    against: tuple[str, ...] | None
    zoo: Path | None
    only: tuple[str, ...]
    cache: Path | None
    inputs: tuple[str, ...]
    sizes: dict[str, int]
    compiling: Compiling

    @property
    def given(self) -> Given:
        """The inputs of the named files."""
        return Given(self.inputs, self.sizes)

    @property
    def others(self) -> tuple[str, ...]:
        """The runtimes to compare with."""
        return (OTHERS[0],) if self.against is None else self.against

    def check_usage(self, context: click.Context) -> None:
        """Refuse options that do not go together."""
        if self.zoo is None and self.only:
            raise click.UsageError("--only needs --zoo, the folder of the models")
        if self.zoo is None and context.get_parameter_source("cache") is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("--cache needs --zoo, the folder of the models")
        if self.zoo is not None and (self.inputs or self.sizes):
            raise click.UsageError("the models of --zoo have their own inputs: leave out --input and --size")

    def cases(self, files: tuple[Path, ...], device: str) -> Cases:
        """The cases of the files and of the folder, with plans that run on a device."""
        cases = [*self._own_cases(files), *self._zoo_cases()]
        if not cases:
            raise click.UsageError("there is nothing to time: name a plan, a model or a --zoo folder")
        return _on_device(device, cases)

    def _own_cases(self, files: tuple[Path, ...]) -> Cases:
        """The plans, each with its model if the user also named it; without any plan, the models."""
        import compiler
        from compiler.bench.saved import saved

        options = compiler.Options(**self.compiling.options)

        def opened(name: str, plan: Plan | None, file: Path, model: Path | None) -> AbstractContextManager[Case]:
            known = compiler.compile(file, options) if plan is None else plan
            return saved(name, known, self.given.arrays(known.inputs), model)

        plans = {file: compiler.Plan.load(file) for file in files if arguments.is_plan(file)}
        models = [file for file in files if file not in plans]
        if not plans:
            return [(_name(model, files), partial(opened, _name(model, files), None, model, model)) for model in models]
        if self.compiling.lower_3d and self.zoo is None:
            raise click.UsageError("--lower-3d changes models when compiling, and FILES have plans: leave it out")
        pairs = _pairs(plans, models)
        for file, found in pairs.items():
            if found is None and self.against:
                raise click.UsageError(f"--against {','.join(self.against)} needs the model of {file}: name it too")
        return [
            (_name(file, files), partial(opened, _name(file, files), plan, file, pairs[file]))
            for file, plan in plans.items()
        ]

    def _zoo_cases(self) -> Cases:
        """The models of the folder, with the shapes of their first cases. Downloads are in the cache."""
        from compiler.zoo.timing import opened

        entries = entries_of(self.zoo, self.only, cache=self.cache) if self.zoo else []
        return [(entry.name, partial(opened, entry, self.compiling)) for entry in entries]


case_options = grouped(
    "chosen",
    ChosenCases,
    click.option(
        "--against",
        callback=_against,
        metavar="LIST",
        help="Runtimes to compare with, separated by commas: onnxruntime, openvino, mnn. The word `nothing` selects "
        "none.  [default: onnxruntime; none for a plan without its model]",
    ),
    click.option(
        "--zoo",
        type=arguments.INPUT,
        metavar="FOLDER",
        help="Folder of models, with a file INDEX.json: time every model. See `candlec zoo --help`.",
    ),
    only_option("With --zoo, time only these models: {}. May be repeated."),
    cache_option,
    input_option,
    size_option,
    compiling_option,
    custom_option,
)


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


def _on_device(device: str, cases: Cases) -> Cases:
    """The same cases, with plans that run on a device."""

    @contextmanager
    def placed(opened: Callable[[], AbstractContextManager[Case]]) -> Iterator[Case]:
        with opened() as case:
            yield replace(case, device=device)

    return [(name, partial(placed, opened)) for name, opened in cases]
