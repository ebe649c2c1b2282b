"""`candlec bench`: how long a run takes, alone or beside onnxruntime, the two taking turns in one process."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from compiler.cli import arguments
from compiler.cli.failure import Failed, error_data
from compiler.cli.output import Cell, console, json_option, print_json, table, working
from compiler.cli.timing import Subject, Timing, time_subject

if TYPE_CHECKING:
    from compiler import Plan

Subjects = list[tuple[str, Callable[[], Subject]]]
"""Names, and what makes the subject, which may be refused."""


@click.command(short_help="Time plans, alone or beside onnxruntime.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--against",
    type=click.Choice(["onnxruntime", "nothing"]),
    help="What to take turns with.  [default: onnxruntime, where the model is known]",
)
@click.option(
    "--zoo",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Every model of a folder, which its INDEX.json describes: see `candlec zoo --help`.",
)
@click.option("--model", "names", multiple=True, metavar="NAME", help="With --zoo: only this model. May be repeated.")
@arguments.input_option
@arguments.size_option
@click.option(
    "--threads",
    "counts",
    multiple=True,
    type=click.IntRange(1, arguments.MAX_THREADS),
    default=(1, 2),
    show_default=True,
    metavar="N",
    help="Threads of a run. May be repeated.",
)
@click.option(
    "--seconds",
    type=arguments.Finite(0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="X",
    help="How long to time each model and number of threads.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    against: str | None,
    zoo: Path | None,
    names: tuple[str, ...],
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    counts: tuple[int, ...],
    seconds: float,
    as_json: bool,
) -> None:
    """Time FILES: median, spread, and the ratio to onnxruntime's time, below 1 where the plan is faster.

    A model is compiled and timed beside onnxruntime. A plan is timed alone, or beside onnxruntime when its model is
    named with it. Both run the same inputs in turns, so that a busy machine disturbs both alike. Exit code 1 when one
    is refused.

    \b
    candlec bench model.onnx --input io.npz --threads 1
    candlec bench model.plan
    candlec bench model.plan model.onnx --against onnxruntime
    candlec bench --zoo models --seconds 5 --json
    """
    if zoo is None and names:
        raise click.UsageError("--model names one of a --zoo folder")
    if zoo is not None and (inputs or sizes):
        raise click.UsageError("the models of a --zoo have inputs of their own: leave out --input and --dim")
    subjects = [*_own_subjects(files, against, inputs, sizes), *_zoo_subjects(zoo, names)]
    if not subjects:
        raise click.UsageError("name a plan, a model or a --zoo folder")
    timings, refused = _time_all(subjects, counts, seconds, against != "nothing")
    if as_json:
        refusals = {name: error_data(error) for name, error in refused.items()}
        print_json(
            {"timings": [asdict(each) for each in timings], "geometric_mean": _means(timings), "refused": refusals}
        )
    else:
        _show(timings)
        for name, error in refused.items():
            console.print(f"✗ {name}: {error}", style="red", soft_wrap=True)
    context.exit(1 if refused else 0)


def _time_all(
    subjects: Subjects, counts: tuple[int, ...], seconds: float, beside: bool
) -> tuple[list[Timing], dict[str, Exception]]:
    """The timings, and by name why a model is not among them."""
    from compiler import CompileError, InputError, RunError
    from compiler.reference import ReferenceFailed

    timings: list[Timing] = []
    refused: dict[str, Exception] = {}
    for name, make in subjects:
        try:
            with working(f"compiling {name}"):
                subject = make()
            for threads in counts:
                with working(f"{name}, {threads} threads"):
                    timings.append(time_subject(subject, threads, seconds, beside))
        except (CompileError, InputError, RunError, ReferenceFailed) as error:
            refused[name] = error
    return timings, refused


def _own_subjects(
    files: tuple[Path, ...], against: str | None, inputs: tuple[str, ...], sizes: dict[str, int]
) -> Subjects:
    """The plans, each with its model if that is named too; without any plan, the models."""
    import compiler

    def make(file: Path, plan: Plan | None, model: Path | None) -> Subject:
        plan = compiler.compile(file) if plan is None else plan
        return Subject(_name(file, files), plan, arguments.given_inputs(plan.inputs, inputs, sizes), model)

    plans = {file: compiler.Plan.load(file) for file in files if file.exists() and arguments.is_plan(file)}
    models = [file for file in files if file not in plans]
    if not plans:
        return [(_name(model, files), partial(make, model, None, model)) for model in models]
    pairs = {file: _model_of(plan, models) for file, plan in plans.items()}
    for model in models:
        if model not in pairs.values():
            raise click.UsageError(f"{model} is the model of none of these plans: time it by itself")
    for file, found in pairs.items():
        if found is None and against == "onnxruntime":
            raise click.UsageError(f"--against onnxruntime: name the model of {file} too")
    return [(_name(file, files), partial(make, file, plan, pairs[file])) for file, plan in plans.items()]


def _name(file: Path, files: tuple[Path, ...]) -> str:
    """What tells a file from the others."""
    alike = [other for other in files if other.stem == file.stem and other.suffix == file.suffix]
    return file.stem if len(alike) == 1 else str(file)


def _model_of(plan: Plan, models: list[Path]) -> Path | None:
    """The model that a plan was compiled from, if it is among these."""
    return next((model for model in models if arguments.is_of(plan, model)), None)


def _zoo_subjects(zoo: Path | None, names: tuple[str, ...]) -> Subjects:
    """The models of the folder, with the shapes of their first cases."""
    import compiler
    from compiler.zoo import Entry, read_index, with_shapes

    def make(entry: Entry) -> Subject:
        inputs = entry.inputs(entry.cases[0])
        shapes = {name: array.shape for name, array in inputs.items()}
        return Subject(entry.name, compiler.compile(with_shapes(entry.path, shapes)), inputs, entry.path)

    try:
        entries = read_index(zoo, names) if zoo else []
    except ValueError as error:
        raise Failed(str(error)) from error
    return [(entry.name, partial(make, entry)) for entry in entries]


def _means(timings: list[Timing]) -> dict[int, float]:
    """The geometric mean of the ratios, by number of threads."""
    ratios: dict[int, list[float]] = {}
    for each in timings:
        if each.ratio is not None:
            ratios.setdefault(each.threads, []).append(each.ratio)
    return {threads: statistics.geometric_mean(found) for threads, found in sorted(ratios.items())}


def _show(timings: list[Timing]) -> None:
    columns = ["model", ">threads", ">plan", ">±"]
    if any(each.ratio is not None for each in timings):
        columns += [">onnxruntime", ">±", ">ratio"]
    table(columns, (_cells(each)[: len(columns)] for each in timings))
    for count, mean in _means(timings).items():
        console.print(
            f"geometric mean of the ratios, {count} thread{'s' if count > 1 else ''}: {mean:.2f}", style="bold"
        )


def _cells(timing: Timing) -> list[Cell]:
    ours = [timing.model, str(timing.threads), *_shown(timing.milliseconds, timing.spread)]
    theirs = _shown(timing.reference_milliseconds, timing.reference_spread)
    ratio = "" if timing.ratio is None else f"{timing.ratio:.2f}"
    return [*ours, *theirs, Text(ratio, "green" if timing.ratio is not None and timing.ratio <= 1 else "")]


def _shown(milliseconds: float | None, spread: float | None) -> list[Cell]:
    return ["", ""] if milliseconds is None or spread is None else [f"{milliseconds:.3f} ms", f"{spread:.0%}"]
