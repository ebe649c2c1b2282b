"""`candlec batch`: run a plan over many rows, and write the outputs in parts."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.custom import custom_option
from compiler.cli.failure import Failed
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, errors, json_option, print_json
from compiler.cli.progress import Rows
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compiler.batch import Settings, Summary


def _columns(_context: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """`("x=pixels",)` → `{"x": "pixels"}`."""
    found: dict[str, str] = {}
    for value in values:
        name, sign, column = value.partition("=")
        if not (name and sign and column):
            raise click.BadParameter(f"{value!r} is not INPUT=COLUMN")
        if name in found:
            raise click.BadParameter(f"{name!r} appears twice: give one column")
        found[name] = column
    return found


def _settings(
    columns: dict[str, str],
    outputs: tuple[str, ...],
    batch: int | None,
    part_rows: int,
    form: Any,
    scale: float | None,
    cast: bool,
    resume: bool,
) -> Settings:
    from compiler.batch import Settings

    return Settings(columns, batch, part_rows, cast, scale, form, outputs or None, resume)


settings_options = grouped(
    "settings",
    _settings,
    click.option(
        "--map",
        "columns",
        multiple=True,
        metavar="INPUT=COLUMN",
        callback=_columns,
        help="Take an input of the plan from a column with another name. May be repeated.",
    ),
    click.option(
        "--select",
        "outputs",
        multiple=True,
        metavar="OUTPUT",
        help="Compute only this output. May be repeated.  [default: all outputs]",
    ),
    click.option(
        "--batch",
        type=arguments.Whole(1),
        metavar="N",
        help="Number of rows of a run.  [default: the plan's fixed size, otherwise 32]",
    ),
    click.option(
        "--part-rows",
        type=arguments.Whole(1),
        default=65_536,
        show_default=True,
        metavar="N",
        help="End a part of the output after N rows. A part ends earlier after 64 MiB or a minute.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["parquet", "npz"]),
        help="Format of the parts.  [default: npz if all data are .npz or .safetensors files, otherwise parquet]",
    ),
    click.option(
        "--scale", type=arguments.Finite(), metavar="X", help="Multiply the pixels of images, 0 to 255, by X."
    ),
    click.option("--cast", is_flag=True, help="Convert numbers to the dtype of the input even if this rounds them."),
    click.option("--resume", is_flag=True, help="Continue an interrupted run in the folder of --output."),
)


def _runner(
    engine: str, workers: int | None, device: str, threads: int | None, max_memory: int | None
) -> Callable[..., Summary]:
    """The function that runs a plan over rows."""
    if workers and engine != "ray":
        raise click.UsageError("--workers is the number of workers of --engine ray: add this option")
    if engine == "local":
        from compiler.batch import run_batch

        return partial(run_batch, device=device, threads=threads, max_memory=max_memory)
    from compiler.ray import run_batch as run_on_ray

    on_ray = partial(run_on_ray, workers=workers, device=device, threads=threads, max_memory=max_memory)

    def run(*given: Any, **others: Any) -> Summary:
        with redirect_stdout(sys.stderr):  # Ray reports the death of a worker there
            return on_ray(*given, **others)

    return run


runner_options = grouped(
    "run",
    _runner,
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Run the batches in this process, or in workers on a Ray cluster.",
    ),
    click.option(
        "--workers",
        type=arguments.Whole(1),
        metavar="N",
        help="Number of workers of --engine ray.  [default: as many as the CPUs or GPUs of the cluster allow]",
    ),
    click.option("--fail-on-bad-rows", "fail_on_bad", is_flag=True, help="Exit with code 1 if there are bad rows."),
    custom_option,
    arguments.device_option,
    arguments.threads_option,
    arguments.memory_option("Limit the memory of all values of a run, for example 2GB."),
)
"""The options that say where to run, as the parameter `run`. One of them, `--fail-on-bad-rows`, stays by itself."""


@click.command(cls=Verb)
@click.argument("plan", type=arguments.INPUT)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="DATA",
    help="A file of rows (.parquet, .npz, .safetensors, .png, .jpg), a folder of such files, or a pattern such as "
    "'data/*.parquet'. May be repeated.",
)
@click.option("--output", type=arguments.FOLDER, required=True, metavar="FOLDER", help="Write the parts to a folder.")
@settings_options
@runner_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    plan: Path,
    inputs: tuple[str, ...],
    output: Path,
    settings: Settings,
    run: Callable[..., Summary],
    fail_on_bad: bool,
    as_json: bool,
) -> None:
    """Run PLAN on every row of a set of files, and write the outputs in parts.

    The first axis of the inputs and outputs holds the rows. Each column or array has the name of an input. A list in a
    Parquet column holds all elements of a row. An image is one row, and must have the size and the channels of the
    input.

    Rows that do not fit, and rows for which a step of the plan fails, are bad rows. The output does not contain them.
    The file _bad_rows.jsonl lists them with file, row and reason. If there are bad rows, the exit code is still 0, or 1
    with --fail-on-bad-rows.

    If the command ends early for any reason, the same command with --resume continues the run. It loses no row, and
    writes no row twice. Ctrl-C ends the command after the current batch, and a second Ctrl-C ends it at once.

    With --engine ray, the batches run in workers on a Ray cluster: the cluster that RAY_ADDRESS names, or the one on
    this machine, or else a cluster that the command starts. --threads is the number of threads of a worker, by default
    1.

    \b
    candlec batch model.plan --input rows.parquet --output results
    candlec batch model.plan --input 'day-*.parquet' --output results --map image=pixels --resume
    candlec batch model.plan --input photos --output results --scale 0.00392156862745098
    """
    with Rows() as progress, _interruptions() as stop, _naming_options():
        summary = run(plan, inputs, output, settings, progress=progress, stop=stop)
    if not summary.finished:
        errors.print(f"{output}: the same command with --resume continues", soft_wrap=True)
        raise click.Abort
    is_right = not (fail_on_bad and summary.bad)
    if as_json:
        print_json({"ok": is_right, "output": str(output), **asdict(summary)})
    else:
        _show(summary, output)
    context.exit(0 if is_right else 1)


def _show(summary: Summary, output: Path) -> None:
    """Print what the run did, and where its bad rows are."""
    new = summary.rows - summary.known
    speed = f", {new / summary.seconds:,.0f} rows/s" if new and summary.seconds else ""
    earlier = f" ({summary.known:,} rows from an earlier run)" if summary.known else ""
    parts = f"{summary.parts} part{'s' * (summary.parts != 1)}"
    ran = f"{summary.seconds:.1f} s on {summary.device}{speed}"
    console.print(f"{summary.written:,} of {summary.rows:,} rows in {parts}, {ran}{earlier}: {output}", soft_wrap=True)
    if summary.bad:
        rows = f"{summary.bad:,} bad row{'s' * (summary.bad != 1)}"
        errors.print(f"{rows}: {output / '_bad_rows.jsonl'} has the reasons", style="yellow", soft_wrap=True)


@contextmanager
def _naming_options() -> Iterator[None]:
    """Name the option in an error of a setting."""
    from compiler.batch.settings import SettingError

    try:
        yield
    except SettingError as error:
        ways = {
            "columns": f"name the column with --map {error.value}=COLUMN",
            "outputs": "choose other outputs with --select",
            "batch": "leave out --batch, or compile the model for this number of rows",
        }
        raise Failed(f"{error.problem}\n  help: {ways[error.setting]}") from error


@contextmanager
def _interruptions() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed. The second one raises KeyboardInterrupt."""
    pressed = threading.Event()

    def handle(_signal: int, _frame: object) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield pressed.is_set
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
