"""`make bench-commits`: compares the speed of the plans of two commits.

Two processes have the extensions of the two commits, which one process cannot load together. Both run on the same
processors, in turns of a few milliseconds, so that a busy machine slows both equally. The ratio of a turn is the median
of the new commit's runs ÷ the median of the old one's. Below 1, the new commit is faster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.commits.checkouts import Unusable, checkout
from benchmarks.commits.compared import Compared, mean, table, take_rounds
from benchmarks.commits.process import Failed, Worker
from compiler.bench.machine import described
from compiler.zoo.index import Entry, read_index


def compare(folders: Sequence[Path], entry: Entry, threads: int, seconds: float, pairs: int) -> Compared:
    """Times a model in several pairs of processes, each for so many seconds.

    Raises:
        Failed: a commit cannot compile or run the model.
    """
    found = []
    for _ in range(pairs):
        with ExitStack() as stack:
            old, new = (stack.enter_context(Worker(folder)) for folder in folders)
            old.load(entry, threads)
            new.load(entry, threads)
            found.append(take_rounds(old.turn, new.turn, seconds))
    return Compared(entry.name, tuple(found))


def data(compared: Sequence[Compared], failed: dict[str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    """The results as JSON data."""
    return {
        "old": arguments.old,
        "new": arguments.new,
        "threads": arguments.threads,
        "machine": described(()),
        "models": [each.data() for each in compared],
        "geometric_mean": mean(compared) if compared else None,
        "worst": max(compared, key=lambda each: each.ratio).model if compared else None,
        "failed": failed,
    }


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commits", description=__doc__)
    parser.add_argument("old", help="a commit, or a folder with a checkout and its extension")
    parser.add_argument("new", help="another one")
    parser.add_argument("--zoo", type=Path, default=Path("models"), help="folder with an INDEX.json (default: models)")
    parser.add_argument("--only", action="append", metavar="NAME", help="time only this model; may be repeated")
    parser.add_argument("--threads", type=int, default=1, help="threads of each plan (default: 1)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each pair of processes (default: 2)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of processes for each model (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args(given)
    if arguments.threads < 1 or arguments.pairs < 1 or arguments.seconds < 0:
        parser.error("--threads and --pairs are at least 1, and --seconds at least 0")
    return arguments


def main(given: Sequence[str] | None = None) -> int:
    """Prints the comparison; returns 1 if a commit cannot compile or run a model."""
    arguments = parsed(given)
    try:
        folders = [checkout(name) for name in (arguments.old, arguments.new)]
        entries = [each for each in read_index(arguments.zoo) if not arguments.only or each.name in arguments.only]
    except (Unusable, OSError, ValueError) as error:
        sys.exit(str(error))
    if not entries:
        sys.exit(f"{arguments.zoo} has no model named {' or '.join(arguments.only)}")
    compared: list[Compared] = []
    failed: dict[str, str] = {}
    for entry in entries:
        try:
            compared.append(compare(folders, entry, arguments.threads, arguments.seconds, arguments.pairs))
        except Failed as error:
            failed[entry.name] = str(error)
    if arguments.json:
        print(json.dumps(data(compared, failed, arguments), indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(compared, failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
