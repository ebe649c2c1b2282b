"""Sends many small rows through `candlec batch`, and watches the memory of the process.

`python benchmarks/batch_rows.py [ROWS]`, by default with a million rows of 16 numbers in a Parquet file, prints the
rows per second, and the most memory of the process until each quarter of the rows was written. The program fails if a
row is lost or doubled, or if the memory grows by more than `GROWTH` bytes after the first quarter.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx.parser
import pyarrow as pa
import pyarrow.parquet as pq

import compiler

ROOT = Path(__file__).parent.parent
GROWTH = 32 << 20
CHUNK, WIDTH = 100_000, 16
MODEL = """<ir_version: 10, opset_import: ["": 21]>
    sum (float[n, 16] x) => (float[n] y) <int64[1] axis = {1}> { y = ReduceSum <keepdims = 0> (x, axis) }
"""


def write_rows(path: Path, count: int) -> None:
    """Write rows that begin with 0, 1, 2 …, in groups."""
    kind = pa.schema([("x", pa.list_(pa.float32(), WIDTH))])
    with pq.ParquetWriter(path, kind) as writer:
        for start in range(0, count, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, count), dtype=np.float32)
            rows = np.zeros((len(numbers), WIDTH), np.float32)
            rows[:, 0] = numbers
            column = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), WIDTH)
            writer.write_table(pa.table({"x": column}, kind))


def peak(process: int) -> int:
    """The most bytes of a process that lay in memory at once, so far."""
    status = Path(f"/proc/{process}/status").read_text()
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def parts(folder: Path) -> int:
    return sum(1 for _ in folder.glob("part-*.parquet"))


def watched(command: list[str], output: Path, count: int, part: int) -> list[int]:
    """The peak when each quarter of the parts was there."""
    total = -(-count // part)
    peaks: list[int] = []
    last = 0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(0.02)
            found = peak(process.pid)
            while found and len(peaks) < 4 and parts(output) * 4 >= total * (len(peaks) + 1):
                peaks.append(found)
            last = found or last
    if process.returncode:
        raise SystemExit(process.returncode)
    return [*peaks, *[last] * (4 - len(peaks))]


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, plan, output, part = folder / "rows.parquet", folder / "sum.plan", folder / "out", min(20_000, count // 8)
        write_rows(rows, count)
        compiler.compile(onnx.parser.parse_model(MODEL)).save(plan)
        options = ["--input", str(rows), "--output", str(output), "--batch", "1024", "--part-rows", str(part)]
        began = time.perf_counter()
        peaks = watched([sys.executable, "-m", "compiler", "batch", str(plan), *options], output, count, part)
        seconds = time.perf_counter() - began
        table = pq.read_table(output)
        assert (np.sort(table["source_row"].to_numpy()) == np.arange(count)).all(), "each row is there once"
        assert (table["y"].to_numpy() == table["source_row"].to_numpy().astype(np.float32)).all()
        print(f"{count} rows in {seconds:.1f} s: {count / seconds:.0f} rows/s")
        print("peak after each quarter:", ", ".join(f"{each / 1e6:.0f} MB" for each in peaks))
        assert peaks[-1] - peaks[0] <= GROWTH, "the memory grows"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
