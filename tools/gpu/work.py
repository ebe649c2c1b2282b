"""The program of the processes that run checks. It prints the results of its checks as lines of JSON.

An error after which a process cannot use the GPU ends the process. The next check runs in another process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

import click  # noqa: E402

import compiler  # noqa: E402
from gpu.ending import end_with_parent  # noqa: E402
from gpu.files import FOLDER, beside, names, read, unpacked  # noqa: E402
from gpu.process import Setting  # noqa: E402
from gpu.results import Result, finite, guarded, one_line  # noqa: E402
from gpu.trace import end_after_profiling  # noqa: E402

LARGEST = 1 << 16
"""The limit of a line of JSON, in bytes. A longer result keeps only its verdict."""
TIMES = click.FloatRange(0)


@click.command()
@click.argument("section")
@click.option("--bundle", type=click.Path(path_type=Path), default=FOLDER)
@click.option("--device", default="cuda")
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "build")
@click.option("--deadline", type=TIMES, default=float("inf"), help="The deadline, by the monotonic clock.")
@click.option("--started", type=TIMES, default=0.0, help="The start time, by the same clock.")
@click.option("--start", default=0, help="The index of the first check.")
@click.option("--stop", type=int, help="The index after the last check.")
@click.option("--only", help="The name of a check, instead of these indices.")
def main(section: str, started: float, start: int, stop: int | None, only: str | None, **where: Any) -> None:
    """Run the checks of one section. The section `open` only checks whether the device is usable."""
    end_with_parent()
    setting = Setting(**where)
    prepare(setting.bundle)
    if section == "open":
        refuse_or_open(setting)
        return
    module = importlib.import_module(f"gpu.{section}")
    module_names = module.names(setting)
    chosen = [module_names.index(only)] if only else range(len(module_names))[start:stop]
    for number in chosen:
        for result in guarded(module.results(module_names[number], setting, started)):
            tell({"number": number, "name": module_names[number], **result})
    end_after_profiling()


def prepare(bundle: Path) -> None:
    """Loads the extensions of a bundle, and sets the folder for the driver's cache of kernels."""
    os.environ.setdefault("CUDA_CACHE_PATH", str(beside(bundle) / "kernels"))
    os.environ.setdefault("CUDA_CACHE_MAXSIZE", str(1 << 30))
    compiler.__path__.insert(0, str(unpacked(bundle)))


def refuse_or_open(setting: Setting) -> None:
    """Opens the device, or prints the reason why that fails."""
    try:
        first = read(setting.bundle, "small", names(setting.bundle, "small")[0])
        compiler.load(compiler.Plan(first["plan"]), device=setting.device, threads=1)
    except compiler.DeviceError as error:
        tell({"name": "", "verdict": "refused", "note": one_line(error)})
        sys.exit(2)


def tell(result: Result) -> None:
    """Prints a line of JSON."""
    result = finite(result)
    line = json.dumps(result, allow_nan=False)
    if len(line) > LARGEST:
        kept = ("number", "name", "verdict", "partial", "note")
        line = json.dumps({key: result[key] for key in kept if key in result} | {"shortened": True})
    print(line, flush=True)


if __name__ == "__main__":
    main()
