"""Times ways to run a plan over many rows: a bare loop, `candlec batch`, Ray's workers, Ray Data, and Ray Serve.

All ways run the same session with one thread, and batches of the same size. The script starts a cluster of Ray on this
machine and writes tables of Markdown to the standard output. It needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data
from onnx import TensorProto, numpy_helper
from ray import serve

import compiler
from compiler.batch import Settings, Summary
from compiler.batch import run_batch as run_here
from compiler.bench.machine import described, in_words
from compiler.ray import Predictor, deployment
from compiler.ray import run_batch as run_on_ray

WIDTH, LAYERS = 1024, 16
CLIENTS = 32


def layers() -> compiler.Plan:
    """A network of 16 products of 1024 × 1024 with ReLU: 34 million multiplications and additions a row of 4 KiB."""
    random = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer in range(LAYERS):
        weight = random.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH**0.5)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes.append(onnx.helper.make_node("MatMul", [value, f"w{layer}"], [f"p{layer}"]))
        value = "y" if layer == LAYERS - 1 else f"v{layer}"
        nodes.append(onnx.helper.make_node("Relu", [f"p{layer}"], [value]))
    kinds = [onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", WIDTH]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(nodes, "layers", kinds[:1], kinds[1:], weights)
    return compiler.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]))


MODELS: dict[str, tuple[Callable[[], compiler.Plan], int]] = {
    "digits": (lambda: compiler.compile("models/digits.onnx"), 20_000),
    "layers": (layers, 4_000),
}
"""The plans, and the numbers of rows."""


def loop(plan: Path, rows: np.ndarray[Any, Any], size: int, threads: int) -> float:
    """Seconds of a loop that runs a session over rows in memory, and keeps the outputs."""
    session = compiler.load(plan, threads=threads)
    (info,) = session.inputs
    given = rows.reshape(len(rows), *(each for each in (info.shape or ())[1:] if isinstance(each, int)))
    session.run({info.name: given[:size]})
    began = time.perf_counter()
    found = [session.run({info.name: given[at : at + size]}) for at in range(0, len(rows), size)]
    seconds = time.perf_counter() - began
    assert sum(len(next(iter(each.values()))) for each in found) == len(rows)
    return seconds


def over_files(run: Callable[..., Summary], plan: Path, file: Path, size: int, **options: Any) -> float:
    """Seconds of a run over a Parquet file, without the start of the workers."""
    output = file.with_suffix(".out")
    shutil.rmtree(output, ignore_errors=True)
    return run(plan, [file], output, Settings(batch=size), threads=1, **options).seconds


class Timed(Predictor):
    """Adds the times at which a batch begins and ends."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        """The outputs, and the times for each row."""
        began = time.time()
        found = super().__call__(batch)
        count = len(next(iter(found.values())))
        return {**found, "began": np.full(count, began), "ended": np.full(count, time.time())}


def dataset(plan: Path, file: Path, size: int, actors: int) -> float:
    """Seconds from the first batch of a dataset to the end of the last one."""
    pool = ray.data.ActorPoolStrategy(size=actors)
    read = ray.data.read_parquet(str(file), override_num_blocks=20)
    made = read.map_batches(Timed, fn_constructor_kwargs={"plan": str(plan)}, compute=pool, batch_size=size)
    times = [(block["began"].min(), block["ended"].max(), len(block["began"])) for block in made.iter_batches()]
    assert sum(count for *_, count in times) == pq.read_metadata(file).num_rows
    return float(max(ended for _, ended, _ in times) - min(began for began, *_ in times))


def requests(plan: Path, row: np.ndarray[Any, Any], seconds: float, most: int) -> tuple[float, float]:
    """Answers per second to many clients that each send one row, and the median of milliseconds of an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config={"enable_access_log": False})
    serve.run(
        deployment(plan, max_batch_size=most, batch_wait_timeout_s=0.005, max_ongoing_requests=CLIENTS), name="plan"
    )
    name = compiler.load(plan, threads=1).inputs[0].name
    body = json.dumps({name: row.tolist()}).encode()

    def client(_: int) -> list[float]:
        times, end = [], time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as response:
                response.read()
            times.append(time.perf_counter() - began)
        return times

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [each for times in pool.map(client, range(CLIENTS)) for each in times]
    serve.shutdown()
    return len(found) / seconds, 1000 * float(np.median(found))


def table(name: str, size: int, rounds: int, folder: Path) -> None:
    """Print the best speed of each way for a model. In each round, all ways take turns."""
    made, count = MODELS[name]
    plan, file = folder / f"{name}.plan", folder / f"{name}.parquet"
    made().save(plan)
    (info,) = compiler.load(plan, threads=1).inputs
    width = int(np.prod([each for each in (info.shape or ())[1:] if isinstance(each, int)]))
    rows = np.random.default_rng(0).random((count, width), np.float32)
    column = pa.FixedSizeListArray.from_arrays(rows.reshape(-1), width)
    pq.write_table(pa.table({info.name: column}), file, row_group_size=count // 20)
    ways: dict[str, Callable[[], float]] = {
        "a loop of `Session.run`, rows in memory": lambda: loop(plan, rows, size, 1),
        "the same loop with 2 threads": lambda: loop(plan, rows, size, 2),
        "`candlec batch`": lambda: over_files(run_here, plan, file, size),
        "`candlec batch --engine ray --workers 1`": lambda: over_files(run_on_ray, plan, file, size, workers=1),
        "`candlec batch --engine ray --workers 2`": lambda: over_files(run_on_ray, plan, file, size, workers=2),
        "`ray.data` with 1 `Predictor`": lambda: dataset(plan, file, size, 1),
        "`ray.data` with 2 `Predictor`s": lambda: dataset(plan, file, size, 2),
    }
    turns = [{way: run() for way, run in ways.items()} for _ in range(rounds)]
    times = {way: min(turn[way] for turn in turns) for way in ways}
    first = next(iter(times.values()))
    print(f"\n{name}: {count:,} rows of {4 * width:,} bytes in batches of {size}\n")
    print("| way | rows/s | time ÷ loop |\n|---|---:|---:|")
    for way, seconds in times.items():
        print(f"| {way} | {count / seconds:,.0f} | {seconds / first:.2f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--models", default="digits,layers", help="begins with digits")
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    began = time.perf_counter()
    ray.init("local", num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    start = time.perf_counter() - began
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    print(f"`python benchmarks/serving.py`\n\n{in_words(described(()))}, Ray {version('ray')}")
    print(f"\nThe cluster started in {start:.1f} s.")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models.split(","):
            table(name, options.batch, options.rounds, Path(folder))
        print(f"\nRay Serve, {CLIENTS} clients in one process, one row of digits a request, answers in JSON:\n")
        print("| rows together | answers/s | median ms |\n|---|---:|---:|")
        row = np.zeros((1, 1, 8, 8), np.float32)
        for most in (1, CLIENTS):
            speed, middle = requests(Path(folder) / "digits.plan", row, options.seconds, most)
            print(f"| up to {most} | {speed:,.0f} | {middle:.1f} |", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
