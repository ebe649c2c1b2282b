"""`candlec bench`: the time of a run, alone or compared with onnxruntime, OpenVINO and MNN, in turns in one process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.cases import Cases, ChosenCases, case_options
from compiler.cli.failure import error_data
from compiler.cli.grouped import grouped
from compiler.cli.output import console, json_option, print_json, working, write_text
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from compiler.bench.timing import Timing


@dataclass(frozen=True)
class Effort:
    """How long and how often to time a case."""

    counts: tuple[int, ...]
    seconds: float
    processes: int
    cold: bool

    def time(self, cases: Cases, others: tuple[str, ...]) -> tuple[list[Timing], dict[str, Exception]]:
        """The timings beside other runtimes, and the errors of refused models by name."""
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
                    for threads in self.counts:
                        with working(f"{name}, {threads} threads"):
                            now = self.cold and threads == self.counts[0]
                            timings.append(time_case(case, engines, threads, self.seconds, self.processes, cold=now))
            except (CompileError, InputError, RunError) as error:
                refused[name] = error
        return timings, refused


effort_options = grouped(
    "effort",
    Effort,
    click.option(
        "--threads",
        "counts",
        multiple=True,
        type=arguments.Whole(1, arguments.MAX_THREADS),
        default=(1, 2),
        show_default=True,
        metavar="N",
        help="Number of threads. May be repeated.",
    ),
    click.option(
        "--seconds",
        type=arguments.Finite(0, min_open=True),
        default=2.0,
        show_default=True,
        metavar="X",
        help="Time to spend on each model and number of threads.",
    ),
    click.option(
        "--processes",
        type=arguments.Whole(1, 100),
        default=1,
        show_default=True,
        metavar="N",
        help="Time each runtime in N separate processes, and in N more if their ratios differ by more than a tenth.",
    ),
    click.option(
        "--cold",
        is_flag=True,
        help="Also measure in separate processes: load time, first run, and peak memory above that of an idle process.",
    ),
)


@click.command(cls=Verb)
@click.argument("files", nargs=-1, type=arguments.INPUT)
@case_options
@arguments.named_device_option("Device to run plans on; the other runtimes run on the CPU.")
@effort_options
@click.option(
    "--markdown",
    type=arguments.OUTPUT,
    metavar="FILE",
    help="Write the tables, the machine and the command to a Markdown file.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    chosen: ChosenCases,
    device: str,
    effort: Effort,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Time FILES, and show the median, the spread, and the ratio of the plan's time to the other runtimes' times.

    FILES are models and plans. If a file is a model, the command compiles it, and compares the time of the plan with
    onnxruntime's. If a file is a plan, the command times it alone, or compares it with the other runtimes if FILES also
    contain its model. A ratio below 1 means that the plan is faster. The runtimes take turns and run the same inputs,
    so that a busy machine slows all of them equally. The exit code is 1 if the compiler refuses a model. The command
    also reports the failures of the other runtimes.

    \b
    candlec bench model.onnx --input io.npz --threads 1
    candlec bench model.plan
    candlec bench model.plan model.onnx --against onnxruntime,openvino --cold
    candlec bench --zoo models --processes 3 --markdown table.md
    candlec bench --zoo models --only op:Conv
    candlec bench model.onnx --device cuda
    """
    chosen.check_usage(context)
    arguments.check_outputs({"--markdown": markdown}, [*files, *chosen.given.files])
    timings, refused = effort.time(chosen.cases(files, device), chosen.others)
    if markdown is not None:
        write_text(markdown, _page(timings, chosen.others, refused))
    if as_json:
        print_json({"ok": not refused, "device": device, **_data(timings, chosen.others, refused)})
    else:
        _show(timings, refused, device)
    context.exit(1 if refused else 0)


def _show(timings: list[Timing], refused: dict[str, Exception], device: str) -> None:
    from compiler.cli.tables import bench as bench_table

    bench_table.show(timings)
    if device != "cpu":
        console.print(f"Plans ran on {device}, the other runtimes on the CPU.")
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
    from compiler.cli.tables import bench as bench_table

    command = " ".join(["candlec", *sys.argv[1:]])
    return bench_table.page(timings, command, in_words(described(_used(timings, others))), refused)


def _used(timings: list[Timing], others: tuple[str, ...]) -> list[str]:
    """The other engines that ran or failed."""
    return [name for name in others if any(name in (*timing.engines, *timing.failed) for timing in timings)]
