"""`candlec bench`: the time of a run, alone or compared with onnxruntime, OpenVINO and MNN, in turns in one process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.bench.effort import Effort
from compiler.cli import arguments
from compiler.cli.cases import ChosenCases, FileCase, case_options
from compiler.cli.failure import error_data
from compiler.cli.folder import lone_runner_options
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, json_option, print_json, working, write_text
from compiler.cli.progress import Models
from compiler.cli.renamed import Verb
from compiler.cli.zoo_problems import exit_code, show_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.bench.timing import Timing
    from compiler.zoo.bench_folder import Benched
    from compiler.zoo.task_arguments import Bench
    from compiler.zoo.task_runs import TaskSettings


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
@lone_runner_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    chosen: ChosenCases,
    device: str,
    effort: Effort,
    markdown: Path | None,
    settings: TaskSettings,
    as_json: bool,
) -> None:
    """Time FILES, and show the median, the spread, and the ratio of the plan's time to the other runtimes' times.

    FILES are models and plans. If a file is a model, the command compiles it, and compares the time of the plan with
    onnxruntime's. If a file is a plan, the command times it alone, or compares it with the other runtimes if FILES also
    contain its model. A ratio below 1 means that the plan is faster. The runtimes take turns and run the same inputs,
    so that a busy machine slows all of them equally.

    Each model of a folder, or of several FILES, has a process of its own, and the command times one model at a time.
    `candlec zoo run --help` describes the options for the processes. If a model crashes or reaches a limit, the other
    models are not affected. Its error message ends with what its process did last, such as
    `last phase: run with 2 threads`. --timeout limits the time of the whole process, with the compilation and all
    measurements. If FILES is a single file, the command itself times it. With --timeout, --memory-limit or --results,
    this file has a process of its own too.

    The exit code is 1 if the compiler refuses a model, or if a process crashes or reaches a limit. The command also
    reports the failures of the other runtimes.

    \b
    candlec bench model.onnx --input io.npz --threads 1
    candlec bench model.plan
    candlec bench model.plan model.onnx --against onnxruntime,openvino --cold
    candlec bench --zoo models --processes 3 --markdown table.md
    candlec bench --zoo models --only op:Conv
    candlec bench --zoo models --precision bf16
    candlec bench --zoo models --timeout 300 --memory-limit 4G --results times.jsonl --resume
    candlec bench model.onnx --device cuda
    """
    chosen.check_usage(context)
    asked = chosen.asked(files, device, effort, settings)
    read = [*files, *chosen.given.files, *(path for each in asked for path in each.entry.files)]
    read += [chosen.zoo / "INDEX.json"] if chosen.zoo else []
    arguments.check_outputs({"--markdown": markdown, "--results": settings.results}, read)
    found = _timed(asked, settings)
    is_right = all(each.is_whole for each in found)
    if markdown is not None:
        write_text(markdown, _page(found, chosen.others))
    if as_json:
        print_json({"ok": is_right, "device": device, **_data(found, chosen.others)})
    else:
        _show(asked, found, device)
    context.exit(exit_code({each.name: each.ending for each in found}, is_right))


def _timed(asked: Sequence[Bench], settings: TaskSettings) -> list[Benched]:
    """Time a single file in this process, and several models in a process each."""
    from compiler.processes.run import Limits
    from compiler.zoo.bench_folder import benched, benched_here

    if len(asked) == 1 and asked[0].own and settings.limits == Limits() and settings.results is None:
        with working(asked[0].entry.name):
            return [benched_here(asked[0])]
    apart = [
        replace(each, own=replace(each.own, is_apart=True)) if isinstance(each.own, FileCase) else each
        for each in asked
    ]
    with Models("bench", settings.results) as progress:
        found = benched(apart, settings, progress)
    for one, each in zip(apart, found, strict=True):
        if isinstance(one.own, FileCase) and one.own.given.is_random:
            one.own.given.show_shapes(each.inputs, each.name)
    return found


def _timings(found: Sequence[Benched]) -> list[Timing]:
    return [timing for each in found for timing in each.timings]


def _show(asked: Sequence[Bench], found: Sequence[Benched], device: str) -> None:
    from compiler.cli.tables import bench as bench_table

    bench_table.show(_timings(found))
    if device != "cpu":
        console.print(f"Plans ran on {device}, the other runtimes on the CPU.")
    for each in found:
        if each.refusal is not None:
            console.print(f"✗ {each.name}: {each.refusal}", style="red", soft_wrap=True)
    problems = {each.name: [each.problem] for each in found if each.problem}
    files = {one.entry.name: str(one.entry.path) for one in asked if one.own is not None}
    show_problems(problems, {each.name: each.ending for each in found}, files)


def _data(found: Sequence[Benched], others: tuple[str, ...]) -> dict[str, object]:
    from compiler.bench.machine import described
    from compiler.bench.timing import cold_means, means

    timings = _timings(found)
    return {
        "machine": described(_used(timings, others)),
        "timings": [timing.data() for timing in timings],
        "geometric_mean": means(timings),
        "geometric_mean_cold": {what: cold_means(timings, what) for what in ("load", "first", "peak")},
        "refused": {each.name: error_data(each.refusal) for each in found if each.refusal is not None},
        "failed": {each.name: each.problem for each in found if each.problem},
    }


def _page(found: Sequence[Benched], others: tuple[str, ...]) -> str:
    from compiler.bench.machine import described, in_words
    from compiler.cli.tables import bench as bench_table

    timings = _timings(found)
    command = " ".join(["candlec", *sys.argv[1:]])
    problems = {each.name: str(each.refusal or each.problem) for each in found if not each.is_whole}
    return bench_table.page(timings, command, in_words(described(_used(timings, others))), problems)


def _used(timings: list[Timing], others: tuple[str, ...]) -> list[str]:
    """The other engines that ran or failed."""
    return [name for name in others if any(name in (*timing.engines, *timing.failed) for timing in timings)]
