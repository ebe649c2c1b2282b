"""`candlec bench`: how long a run takes, alone or beside onnxruntime and OpenVINO, taking turns in one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.cases import Cases, on_device, own_cases, zoo_cases
from compiler.cli.failure import error_data
from compiler.cli.output import console, json_option, print_json, working
from compiler.files import write_whole

if TYPE_CHECKING:
    from compiler.bench.timing import Timing

NOTHING, OTHERS = "nothing", ("onnxruntime", "openvino")


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


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--against",
    callback=_against,
    metavar="LIST",
    help="What to take turns with: onnxruntime, openvino, both with a comma between, or the word nothing.  "
    "[default: onnxruntime, where the model is known]",
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
@arguments.named_device_option("Where plans run; the others run on the processor.")
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
@click.option(
    "--processes",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Time each in so many processes of its own, and in as many again where these do not agree.",
)
@click.option(
    "--cold",
    is_flag=True,
    help="Also in processes that do nothing else: time to load, first run, and peak memory above the bare process.",
)
@click.option("--markdown", type=arguments.OUTPUT, metavar="FILE", help="Write the tables, with machine and command.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    against: tuple[str, ...] | None,
    zoo: Path | None,
    names: tuple[str, ...],
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    device: str,
    counts: tuple[int, ...],
    seconds: float,
    processes: int,
    cold: bool,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Time FILES: median, spread, and the ratio of a plan's time to the others', below 1 where the plan is faster.

    A model is compiled and timed beside onnxruntime. A plan is timed alone, or beside others when its model is named
    with it. All run the same inputs in turns, so that a busy machine disturbs all alike. Exit code 1 when the compiler
    refuses a model; what the others fail on is told.

    \b
    candlec bench model.onnx --input io.npz --threads 1
    candlec bench model.plan
    candlec bench model.plan model.onnx --against onnxruntime,openvino --cold
    candlec bench --zoo models --processes 3 --markdown table.md
    candlec bench model.onnx --device cuda
    """
    if zoo is None and names:
        raise click.UsageError("--model names one of a --zoo folder")
    if zoo is not None and (inputs or sizes):
        raise click.UsageError("the models of a --zoo have inputs of their own: leave out --input and --dim")
    arguments.check_outputs({"--markdown": markdown}, [*files, *arguments.input_files(inputs)])
    cases = on_device(device, [*own_cases(files, against, inputs, sizes), *zoo_cases(zoo, names)])
    if not cases:
        raise click.UsageError("name a plan, a model or a --zoo folder")
    others = (OTHERS[0],) if against is None else against
    timings, refused = _time_all(cases, others, counts, seconds, processes, cold)
    if markdown is not None:
        write_whole(markdown, _page(timings, others, refused).encode())
    if as_json:
        print_json({"ok": not refused, "device": device, **_data(timings, others, refused)})
    else:
        _show(timings, refused, device)
    context.exit(1 if refused else 0)


def _time_all(
    cases: Cases, others: tuple[str, ...], counts: tuple[int, ...], seconds: float, processes: int, cold: bool
) -> tuple[list[Timing], dict[str, Exception]]:
    """The timings, and by name why a model is not among them."""
    from compiler import CompileError, InputError, RunError
    from compiler.bench.engines import PLAN, installed_version
    from compiler.bench.timing import time_case

    timings: list[Timing] = []
    refused: dict[str, Exception] = {}
    for name, opened in cases:
        try:
            with working(f"compiling {name}"):
                context = opened()
            with context as case:
                engines = [PLAN, *(others if case.model else ())]
                for engine in engines[1:]:
                    installed_version(engine)
                for threads in counts:
                    with working(f"{name}, {threads} threads"):
                        now = cold and threads == counts[0]
                        timings.append(time_case(case, engines, threads, seconds, processes, cold=now))
        except (CompileError, InputError, RunError) as error:
            refused[name] = error
    return timings, refused


def _show(timings: list[Timing], refused: dict[str, Exception], device: str) -> None:
    from compiler.cli import bench_table

    bench_table.show(timings)
    if device != "cpu":
        console.print(f"plans ran on {device}, the others on the processor")
    for name, error in refused.items():
        console.print(f"✗ {name}: {error}", style="red", soft_wrap=True)


def _data(timings: list[Timing], others: tuple[str, ...], refused: dict[str, Exception]) -> dict[str, object]:
    from compiler.bench.machine import described
    from compiler.bench.timing import cold_means, means

    return {
        "machine": described(_used(timings, others)),
        "timings": [timing.data() for timing in timings],
        "geometric_mean": means(timings),
        "geometric_mean_cold": {what: cold_means(timings, what) for what in ("load", "first", "peak")},
        "refused": {name: error_data(error) for name, error in refused.items()},
    }


def _page(timings: list[Timing], others: tuple[str, ...], refused: dict[str, Exception]) -> str:
    from compiler.bench.machine import described, in_words
    from compiler.cli import bench_table

    command = " ".join(["candlec", *sys.argv[1:]])
    return bench_table.page(timings, command, in_words(described(_used(timings, others))), refused)


def _used(timings: list[Timing], others: tuple[str, ...]) -> list[str]:
    """The other engines that something was timed in, or failed in."""
    return [name for name in others if any(name in (*timing.engines, *timing.failed) for timing in timings)]
