"""`make bench-startup`: times the start of the program, each command line in new processes, in turns.

It prints the median, the fastest and the slowest wall time, and the median of the CPU time in user mode, which other
programs affect less. Times are in seconds. The first round does not count, because it fills caches.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "models/digits.onnx"
RUNS = 15

COMMANDS = {
    "--help": ["--help"],
    "--version": ["--version"],
    "compile --help": ["compile", "--help"],
    "explain": ["explain", "CC0301"],
    "ops": ["ops"],
    "compile": ["compile", str(MODEL), "-o", "made.plan"],
    "compile, batch=1": ["compile", str(MODEL), "-o", "made.plan", "--dim", "batch=1"],
    "run": ["run", "digits.plan"],
    "check": ["check", str(MODEL)],
    "inspect": ["inspect", "digits.plan"],
    "verify": ["verify", str(MODEL), "digits.plan"],
}
"""Name → arguments. The processes run in a folder that contains digits.plan."""


def main() -> None:
    """Time the commands and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="processes of each command line (default: %(default)s)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        timed(["compile", str(MODEL), "-o", "digits.plan"], folder)
        rounds = [{name: timed(arguments, folder) for name, arguments in COMMANDS.items()} for _ in range(runs + 1)]
    print(f"{'candlec':20}{'median':>8}{'fastest':>9}{'slowest':>9}{'user':>8}   seconds, {runs} runs")
    for name in COMMANDS:
        walls, users = zip(*(each[name] for each in rounds[1:]), strict=True)
        print(
            f"{name:20}{statistics.median(walls):8.3f}{min(walls):9.3f}{max(walls):9.3f}{statistics.median(users):8.3f}"
        )


def timed(arguments: list[str], folder: str) -> tuple[float, float]:
    """The wall time and the time in user mode of one process, in seconds."""
    before, start = os.times().children_user, time.perf_counter()
    command = [sys.executable, "-m", "compiler", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}  # as it is installed
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`candlec {' '.join(arguments)}` ended with exit code {done.returncode}: {done.stderr}")
    return time.perf_counter() - start, os.times().children_user - before


if __name__ == "__main__":
    main()
