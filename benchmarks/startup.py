"""`make bench-startup`: times the start of the program, each command line in new processes, in turns.

It prints the median, the fastest and the slowest wall time, and the median of the CPU time in user mode, which other
programs affect less. Times are in seconds. The first round does not count, because it fills caches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="time the checkout in this folder too, in turns")
    arguments = parser.parse_args()
    roots = [ROOT] if arguments.beside is None else [ROOT, arguments.beside.resolve()]
    rounds: list[dict[tuple[str, Path], tuple[float, float]]] = []
    with contextlib.ExitStack() as stack:
        folders = {root: stack.enter_context(tempfile.TemporaryDirectory()) for root in roots}
        for root in roots:
            timed(["compile", str(MODEL), "-o", "digits.plan"], folders[root], root)
        for _ in range(arguments.runs + 1):
            each = [(name, root) for name in COMMANDS for root in roots]
            rounds.append({(name, root): timed(COMMANDS[name], folders[root], root) for name, root in each})
    show(rounds[1:], roots)


def show(rounds: Sequence[Mapping[tuple[str, Path], tuple[float, float]]], roots: Sequence[Path]) -> None:
    """Print a line for each command line, and the ratio of the fastest times if there are two checkouts."""
    ratio = f"{'ratio':>8}" if len(roots) > 1 else ""
    print(f"{'candlec':20}{'median':>8}{'fastest':>9}{'slowest':>9}{'user':>8}{ratio}   seconds, {len(rounds)} runs")
    for name in COMMANDS:
        times = [[each[name, root] for each in rounds] for root in roots]
        fastest = [min(wall for wall, _ in each) for each in times]
        walls, users = zip(*times[0], strict=True)
        ratio = f"{fastest[0] / fastest[1]:8.2f}" if len(roots) > 1 else ""
        print(
            f"{name:20}{statistics.median(walls):8.3f}{fastest[0]:9.3f}{max(walls):9.3f}{statistics.median(users):8.3f}{ratio}"
        )


def timed(arguments: list[str], folder: str, root: Path) -> tuple[float, float]:
    """The wall time and the time in user mode of one process of the checkout in `root`, in seconds."""
    before, start = os.times().children_user, time.perf_counter()
    command = [sys.executable, "-m", "compiler", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": ""}  # as it is installed
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`candlec {' '.join(arguments)}` ended with exit code {done.returncode}: {done.stderr}")
    return time.perf_counter() - start, os.times().children_user - before


if __name__ == "__main__":
    main()
