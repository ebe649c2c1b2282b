"""Measures how much the memory of the process grows while an operator runs, and what `max_memory` promises.

`python -m tests.scratch.growth --only Hypot`: the rows of `ROWS` with this operator. `--part PART PARTS`: the rows
whose number is `PART` modulo `PARTS`. Each run has a process of its own, so that it finds no memory that an earlier
run left. Prints a line of JSON for each row, and before each row its number on standard error.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from pathlib import Path

import onnx.parser

import compiler
from tests.process_memory import memory
from tests.scratch.row import Feeds, Row
from tests.scratch.table import ROWS

BEYOND = 4 << 20
"""Three quarters of this may lie beyond the limit: buffers that fit a cache, and the pages of the process itself."""


def growth(plan: compiler.Plan, feeds: Feeds, bound: int | None) -> tuple[str, int]:
    """The outcome in a separate process, and the growth of its memory in bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            session = compiler.load(plan, threads=2, max_memory=bound)
            read_code()
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = memory("VmHWM")
            try:
                session.run(feeds)
                outcome = "result"
            except compiler.RunError as error:
                outcome = str(error)
            os.write(writer, json.dumps([outcome, memory("VmHWM") - before]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        written = pipe.read()
    os.waitpid(child, 0)
    return tuple(json.loads(written or '["the process ended", 0]'))


def read_code() -> None:
    """Brings the code of the runtime into memory, which otherwise grows with the code that runs for the first time."""
    populate = 22  # MADV_POPULATE_READ
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "_runtime" in line:
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), populate)


def start_runtime() -> None:
    """Loads a plan, which asks once what the processor can do. Otherwise, each separate process would ask again."""
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 23]> g (float x) => (float y) { y = Neg(x) }')
    compiler.load(compiler.compile(model), threads=1)


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.scratch.growth", description="Measure the memory of operators.")
    parser.add_argument("--only", metavar="OP", help="run only the rows with this operator")
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1), help="run the rows PART, PART + PARTS, …")
    arguments = parser.parse_args()
    part, parts = arguments.part
    rows = [row for row in ROWS[part::parts] if arguments.only in (None, *op_types(row))]
    start_runtime()
    if not rows:
        parser.error(f"no row of the part has the operator {arguments.only}")
    for number, row in enumerate(rows, 1):
        print(f"{number} of {len(rows)}: {row.nodes}", file=sys.stderr, flush=True)
        print(json.dumps(measured(row)), flush=True)


def op_types(row: Row) -> set[str]:
    return {node.op_type for node in onnx.parser.parse_model(row.graph).graph.node}


def measured(row: Row) -> dict[str, object]:
    """The outcome of a row's run, and its growth with the limit, in bytes."""
    plan, feeds = row.plan(row.feeds({}))
    outcome, free = growth(plan, feeds, None)
    bound = max(free - BEYOND, sum(array.nbytes for array in feeds.values()))
    _, bounded = growth(plan, feeds, bound)
    # The memory of several steps has gaps between values that are too small for another value.
    gaps = bound // 4 if len(plan.document["main"]["steps"]) > 2 else 0
    report = {"row": f"{row.nodes} of {row.inputs}", "outcome": outcome, "bound": bound, "growth": bounded}
    return report | {"is_bounded": bounded <= bound + gaps + BEYOND * 3 // 4}


if __name__ == "__main__":
    main()
