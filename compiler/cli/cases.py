"""The cases of `candlec bench`: the named files, and the models of a folder; and the options that choose them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.folder import cache_option, entries_of, only_option
from compiler.cli.input_options import Given, input_option, size_option
from compiler.cli.option_groups import grouped
from compiler.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from compiler import Options, Plan, TensorInfo
    from compiler.bench.effort import Effort
    from compiler.bench.engines import Case
    from compiler.zoo.compile_options import Compiling
    from compiler.zoo.task_arguments import Bench
    from compiler.zoo.task_runs import TaskSettings

__all__ = ["ChosenCases", "FileCase", "case_options"]


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
class FileCase:
    """A named plan or model, the model for the other runtimes, and the inputs. Pickle copies it to another process.

    With `is_apart`, another process opens the case, which cannot end the command with a message about an option.
    """

    name: str
    file: Path
    model: Path | None
    given: Given
    is_apart: bool = False

    @property
    def what(self) -> str:
        """The inputs in words."""
        sizes = " ".join(f"{name}={size}" for name, size in sorted(self.given.sizes.items()))
        return f"inputs {' '.join(self.given.inputs) or 'random'} {sizes}".strip()

    @property
    def read(self) -> tuple[Path, ...]:
        """The files that decide the times, beside the first."""
        return (*([self.model] if self.model and self.model != self.file else []), *self.given.files)

    def opened(self, options: Options) -> AbstractContextManager[Case]:
        """The plan, compiled if the file is a model, with its inputs."""
        import compiler
        from compiler.bench.saved import saved

        is_plan = arguments.is_plan(self.file)
        plan = compiler.Plan.load(self.file) if is_plan else compiler.compile(self.file, options)
        return saved(self.name, plan, self._arrays(plan.inputs), self.model)

    def _arrays(self, declared: Sequence[TensorInfo]) -> dict[str, Any]:
        try:
            return self.given.arrays(declared)
        except (click.ClickException, Failed) as error:
            if not self.is_apart:
                raise
            raise Error(str(error)) from error


@dataclass(frozen=True)
class ChosenCases:
    """The models to time (named files, or the models of a folder), their inputs, and the other runtimes."""

    against: tuple[str, ...] | None
    zoo: Path | None
    only: tuple[str, ...]
    cache: Path | None
    inputs: tuple[str, ...]
    sizes: dict[str, int]

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
        self.given.check_usage()

    def asked(self, files: tuple[Path, ...], device: str, effort: Effort, settings: TaskSettings) -> list[Bench]:
        """The cases of the files and of the folder, to time on a device."""
        from compiler.bench.engines import installed_version
        from compiler.zoo.index import Entry
        from compiler.zoo.task_arguments import Bench

        own = self._file_cases(files, settings.compiling)
        entries = entries_of(self.zoo, self.only, settings, self.cache) if self.zoo else []
        if not own and not entries:
            raise click.UsageError("there is nothing to time: name a plan, a model or a --zoo folder")
        is_compared = bool(entries) or any(each.model for each in own)
        engines = tuple((name, installed_version(name)) for name in self.others) if is_compared else ()
        mine = [(Entry(each.name, each.file, each.read), each) for each in own]
        cases: list[tuple[Entry, FileCase | None]] = [*mine, *((entry, None) for entry in entries)]
        return [Bench(entry, engines, effort, device, settings.compiling, case) for entry, case in cases]

    def _file_cases(self, files: tuple[Path, ...], compiling: Compiling) -> list[FileCase]:
        """The plans, each with its model if the user also named it; without any plan, the models."""
        import compiler

        plans = {file: compiler.Plan.load(file) for file in files if arguments.is_plan(file)}
        models = [file for file in files if file not in plans]
        if not plans:
            return [FileCase(_name(model, files), model, model, self.given) for model in models]
        if compiling.lower_3d and self.zoo is None:
            raise click.UsageError("--lower-3d changes models when compiling, and FILES have plans: leave it out")
        if compiling.precision != "f32" and self.zoo is None:
            raise click.UsageError("--precision rounds products when compiling, and FILES have plans: leave it out")
        pairs = _pairs(plans, models)
        for file, found in pairs.items():
            if found is None and self.against:
                raise click.UsageError(f"--against {','.join(self.against)} needs the model of {file}: name it too")
        return [FileCase(_name(file, files), file, pairs[file], self.given) for file in plans]


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
    only_option(
        "With --zoo, time only these models: {}, or failed (those that failed in the file of --results). May be "
        "repeated."
    ),
    cache_option,
    input_option,
    size_option,
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
