"""Compares plans on a GPU with the CPU, times them beside PyTorch, and profiles them, in three commands.

`make cuda-bundle` writes the bundle build/cuda-check, which this program needs. The program also needs NumPy, ml_dtypes
and click, and PyTorch for the times beside it. Every command writes a page and a JSON file after every step. The former
files stay beside them until every section is done. `--help` lists the exit codes.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

from gpu.packages import refuse_without_packages  # noqa: E402

refuse_without_packages()

import click  # noqa: E402
from gpu.bundle import difference, problem  # noqa: E402
from gpu.commands import COMMANDS, Command, marked, parts, perform  # noqa: E402
from gpu.files import FOLDER, origin  # noqa: E402
from gpu.process import Setting, refusal  # noqa: E402
from gpu.report import Report, former  # noqa: E402

PAGES = ROOT / "benchmarks/results"
REFUSED, INTERRUPTED = 2, 130
"""Exit codes. The exit code of results marked ✗ is 1."""


def a_number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """A number of seconds. click's ranges accept NaN, so this function refuses it."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter("give a number of seconds")
    return value


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(COMMANDS)), metavar="[smoke|compare|tune]...")
@click.option("--device", default="cuda", show_default=True, help="cuda, cuda:1, …, or emulator for a rehearsal.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The folder of the results. [default: $OUT, or the pages']"
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, resolve_path=True),
    default=FOLDER,
    show_default=True,
    help="What to check.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    callback=a_number,
    help="Time limit of a command. [default: the sum of its sections]",
)
def main(names: tuple[str, ...], device: str, out: Path | None, bundle: Path, seconds: float | None) -> None:
    """Check and time the plans of a bundle on a device, by default in all three commands, one after the other.

    \b
    smoke    opens the device, runs small plans, and measures the machine. It ends at its first failure.
    compare  compares operators, models and networks with the CPU, and times them beside PyTorch.
    tune     times kernels and convolutions, and runs Nsight Compute and compute-sanitizer.

    \b
    Examples:
      python3 tools/cuda_check.py smoke
      python3 tools/cuda_check.py --device cuda:1 --out results compare tune

    \b
    Exit codes:
      0    no result is marked ✗
      1    a result is marked ✗
      2    no check began: a message gives the reason, and the former results stay
      130  Ctrl-C ended a command, which keeps its results
    """  # noqa: D301 (click reads the character)
    begun = time.monotonic()
    setting = Setting(bundle, device, float("inf"), out or results_folder(device))
    try:
        refuse_early(setting)
        told = run_all([COMMANDS[name] for name in names or COMMANDS], setting, seconds, begun)
    except KeyboardInterrupt:
        end("Interrupted before a check began: run the command again.", INTERRUPTED)
    sys.exit("; ".join(told) if told else 0)


def refuse_early(setting: Setting) -> None:
    """Ends the program if no check can begin; else prints the bundle's origin."""
    if setting.device == "auto":
        end("device 'auto': a check needs the name of a device, such as cuda or cuda:1", REFUSED)
    if sentence := problem(setting.bundle, setting.device) or unwritable(setting.out):
        end(sentence, REFUSED)
    click.echo(origin(setting.bundle))
    if sentence := refusal(setting):
        end(sentence, REFUSED)
    if sentence := difference(setting.bundle):
        click.echo(sentence, err=True)


def unwritable(folder: Path) -> str:
    """The reason why a folder is not writable; an empty string if it is. Creates a missing folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except FileExistsError:
        return f"{folder} is a file: name a folder for the results with --out"
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}): name another folder for the results with --out"


def run_all(commands: list[Command], setting: Setting, seconds: float | None, begun: float) -> list[str]:
    """Runs commands, up to the first that stops, and returns the texts on the results marked ✗."""
    told = []
    for command in commands:
        limit = command.seconds if seconds is None else seconds
        click.echo(f"\n{command.name}: its checks take {limit:.0f} s at most")
        report = Report(setting.out, command.name, heading(command, setting), parts(command))
        try:
            is_whole = perform(command, setting, report, max(limit - (time.monotonic() - begun), 0), click.echo)
        except KeyboardInterrupt:
            report.save()
            end(interrupted(report), INTERRUPTED)
        click.echo(f"\n{report.page} and {report.file.name} hold the results.")
        if report.wrong:
            told.append(f"{command.name}: {marked(report)}")
        if not is_whole:
            break
        begun = time.monotonic()
    return told


def interrupted(report: Report) -> str:
    """The message on the results that a command keeps after Ctrl-C."""
    kept = f"{report.page} and {report.file.name} keep the finished results; the command can be run again."
    there = [path.name for path in (former(report.page), former(report.file)) if path.exists()]
    return f"\nInterrupted: {kept}" + (f" The former results are in {' and '.join(there)}." if there else "")


def results_folder(device: str) -> Path:
    """The default folder of the results: $OUT if set; else the published pages for a GPU, and build/ for others."""
    if out := os.environ.get("OUT"):
        return Path(out)
    return PAGES if device.startswith("cuda") else ROOT / "build/cuda-check-results"


def end(sentence: str, code: int) -> NoReturn:
    """Ends the program with a message and an exit code."""
    click.echo(sentence, err=True)
    sys.exit(code)


def heading(command: Command, setting: Setting) -> list[str]:
    """The lines with the command, the device, the time and the bundle."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    ran = f"`make cuda-check CALL={command.name}` on {gpu(setting.device)}, {when}."
    return [ran, origin(setting.bundle), *filter(None, [difference(setting.bundle)])]


def gpu(device: str) -> str:
    """The name, driver and memory of the GPU; the device's name if they are unknown."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if device == "emulator" or shutil.which(query[0]) is None:
        return device
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip() or device
    except subprocess.TimeoutExpired:
        return device


if __name__ == "__main__":
    main()
