"""Checks plans on a GPU against the processor, times them beside PyTorch, and profiles them: three calls.

`make cuda-bundle` gathers what this needs, in build/cuda-check. Here NumPy, ml_dtypes and click are enough, and PyTorch
for what is timed beside it. Every call writes a page and a JSON file, after every step. The exit code is 1 where a line
is marked ✗, and 2 where the device cannot be used; then the former page stays.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

import click  # noqa: E402
from gpu.call import CALLS, Call, marked, parts, perform  # noqa: E402
from gpu.files import FOLDER, origin  # noqa: E402
from gpu.process import Setting, refusal  # noqa: E402
from gpu.report import Report  # noqa: E402

PAGES = ROOT / "benchmarks/results"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(CALLS)), metavar="[smoke|compare|tune]...")
@click.option("--device", default="cuda", show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path), help="The folder of the results. [default: $OUT, or the pages']"
)
@click.option("--bundle", type=click.Path(path_type=Path), default=FOLDER, show_default=True, help="What to check.")
@click.option("--seconds", type=click.FloatRange(0), help="What a call may take. [default: the sum of its sections]")
def main(names: tuple[str, ...], device: str, out: Path | None, bundle: Path, seconds: float | None) -> None:
    """Check and time the plans of a bundle on a device: three calls, by default all of them in turn."""
    if not (bundle / "about.json").exists():
        refuse(f"{bundle} is not there: `make cuda-bundle` writes it")
    click.echo(origin(bundle))
    setting = Setting(bundle, device, float("inf"), out or results_folder(device))
    begun = time.monotonic()
    if sentence := refusal(setting):
        refuse(sentence)
    told = []
    for call in [CALLS[name] for name in names or CALLS]:
        limit = call.seconds if seconds is None else seconds
        report = Report(setting.out, call.name, heading(call, setting), parts(call))
        is_whole = perform(call, setting, report, max(limit - (time.monotonic() - begun), 0), click.echo)
        click.echo(f"\n{report.page} and {report.file.name} hold the results.")
        if report.wrong:
            told.append(f"{call.name}: {marked(report)}")
        if not is_whole:
            break
        begun = time.monotonic()
    sys.exit("; ".join(told) if told else 0)


def results_folder(device: str) -> Path:
    """The folder of the results: $OUT where it is set; the pages of a device that is no GPU are not published."""
    if out := os.environ.get("OUT"):
        return Path(out)
    return PAGES if device.startswith("cuda") else ROOT / "build/cuda-check-results"


def refuse(sentence: str) -> None:
    """Ends the check before it began."""
    click.echo(sentence, err=True)
    sys.exit(2)


def heading(call: Call, setting: Setting) -> list[str]:
    """What ran, where and when."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    ran = f"`make cuda-check CALL={call.name}` on {gpu(setting.device)}, {when}."
    return [ran, origin(setting.bundle)]


def gpu(device: str) -> str:
    """The name of the GPU, its driver and its memory, or the device's name."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if device == "emulator" or shutil.which(query[0]) is None:
        return device
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip() or device
    except subprocess.TimeoutExpired:
        return device


if __name__ == "__main__":
    main()
