"""`candlec bench`: how long a run takes, beside onnxruntime, the two taking turns in one process."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from compiler.cli import arguments
from compiler.cli.failure import Failed, error_data
from compiler.cli.output import Cell, console, json_option, print_json, table, working

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compiler import Plan

ROUNDS = (5, 2000)


@dataclass(frozen=True)
class Timing:
    """Median times of a run in milliseconds; a spread is half the distance of the quartiles over the median."""

    model: str
    threads: int
    milliseconds: float
    spread: float
    reference_milliseconds: float
    reference_spread: float
    ratio: float
    rounds: int


@dataclass(frozen=True)
class Subject:
    """What is timed: a model, its plan, and the inputs of both."""

    name: str
    model: Path
    plan: Plan
    inputs: dict[str, Any]


@click.command(short_help="Time plans beside onnxruntime.")
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--zoo", type=click.Path(path_type=Path), metavar="FOLDER", help="Every model of a folder with INDEX.json."
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
    models: tuple[Path, ...],
    zoo: Path | None,
    names: tuple[str, ...],
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    counts: tuple[int, ...],
    seconds: float,
    as_json: bool,
) -> None:
    """Time MODELS beside onnxruntime: median, spread, and the ratio of the two, below 1 where the plan is faster.

    Both run the same inputs in turns, so that a busy machine disturbs both alike. Exit code 1 when one is refused.

    \b
    candlec bench model.onnx --input io.npz --threads 1
    candlec bench --zoo ../shared/zoo --seconds 5 --json
    """
    if zoo is None and names:
        raise click.UsageError("--model names one of a --zoo folder")
    if zoo is not None and (inputs or sizes):
        raise click.UsageError("the models of a --zoo have inputs of their own: leave out --input and --dim")
    subjects = [*_own_subjects(models, inputs, sizes), *_zoo_subjects(zoo, names)]
    if not subjects:
        raise click.UsageError("name a model or a --zoo folder")
    timings, refused = _time_all(subjects, counts, seconds)
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
    subjects: list[tuple[str, Callable[[], Subject]]], counts: tuple[int, ...], seconds: float
) -> tuple[list[Timing], dict[str, Exception]]:
    """The timings, and by name why a model is not among them."""
    from compiler import CompileError
    from compiler.reference import ReferenceFailed

    timings: list[Timing] = []
    refused: dict[str, Exception] = {}
    for name, make in subjects:
        try:
            with working(f"compiling {name}"):
                subject = make()
            for threads in counts:
                with working(f"{name}, {threads} threads"):
                    timings.append(_time(subject, threads, seconds))
        except (CompileError, ReferenceFailed) as error:
            refused[name] = error
    return timings, refused


def _own_subjects(
    models: tuple[Path, ...], files: tuple[str, ...], sizes: dict[str, int]
) -> Iterator[tuple[str, Callable[[], Subject]]]:
    import compiler

    def make(model: Path) -> Subject:
        plan = compiler.compile(model)
        return Subject(model.stem, model, plan, arguments.given_inputs(plan.inputs, files, sizes))

    for model in models:
        yield model.stem, partial(make, model)


def _zoo_subjects(zoo: Path | None, names: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Subject]]]:
    """The models of the folder, with the shapes of their first cases."""
    import compiler
    from compiler.zoo import Entry, read_index, with_shapes

    def make(entry: Entry) -> Subject:
        inputs = entry.inputs(entry.cases[0])
        shapes = {name: array.shape for name, array in inputs.items()}
        return Subject(entry.name, entry.path, compiler.compile(with_shapes(entry.path, shapes)), inputs)

    try:
        entries = read_index(zoo, names) if zoo else []
    except ValueError as error:
        raise Failed(str(error)) from error
    for entry in entries:
        yield entry.name, partial(make, entry)


def _time(subject: Subject, threads: int, seconds: float) -> Timing:
    """Take turns until the time is up."""
    import compiler
    from compiler.reference import Reference

    session = compiler.load(subject.plan, threads=threads)
    reference = Reference(subject.model, threads)
    pair = (lambda: session.run(subject.inputs), lambda: reference.run(subject.inputs))
    ours, theirs = _take_turns(pair, seconds)
    return Timing(
        subject.name, threads, *_median_and_spread(ours), *_median_and_spread(theirs),
        ratio=statistics.median(ours) / statistics.median(theirs), rounds=len(ours),
    )  # fmt: skip


def _take_turns(pair: tuple[Callable[[], Any], ...], seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds of each run of the two, after two runs that are not counted."""
    for run in pair * 2:
        run()
    times: tuple[list[float], list[float]] = ([], [])
    least, most = ROUNDS
    end = time.perf_counter() + seconds
    while len(times[0]) < least or (time.perf_counter() < end and len(times[0]) < most):
        for run, taken in zip(pair, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(1e3 * (time.perf_counter() - start))
    return times


def _median_and_spread(times: list[float]) -> tuple[float, float]:
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, (high - low) / 2 / middle


def _means(timings: list[Timing]) -> dict[int, float]:
    """The geometric mean of the ratios, by number of threads."""
    counts = sorted({each.threads for each in timings})
    return {
        count: statistics.geometric_mean(each.ratio for each in timings if each.threads == count) for count in counts
    }


def _show(timings: list[Timing]) -> None:
    columns = ("model", ">threads", ">plan", ">±", ">onnxruntime", ">±", ">ratio")
    table(columns, (_cells(each) for each in timings))
    for count, mean in _means(timings).items():
        console.print(
            f"geometric mean of the ratios, {count} thread{'s' if count > 1 else ''}: {mean:.2f}", style="bold"
        )


def _cells(timing: Timing) -> list[Cell]:
    ours = [f"{timing.milliseconds:.3f} ms", f"{timing.spread:.0%}"]
    theirs = [f"{timing.reference_milliseconds:.3f} ms", f"{timing.reference_spread:.0%}"]
    return [
        timing.model,
        str(timing.threads),
        *ours,
        *theirs,
        Text(f"{timing.ratio:.2f}", "green" if timing.ratio <= 1 else ""),
    ]
