"""`python -m benchmarks.generation`: times text generation with 4-bit weights, beside onnxruntime and llama.cpp.

The decoders have the shapes of Qwen2-0.5B and Llama-3.2-1B, and seeded weights. All runtimes have the same codes and
scales. Each runtime has a process of its own, and they take turns. In a turn, a runtime reads a prompt, and then single
tokens after the first tokens of the prompt. The program needs the packages `gguf` and `llama-cpp-python`. It writes its
files and results to a folder, and prints the tables of all results in the folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.generation.bandwidth import bandwidth
from benchmarks.generation.gguf_file import write_gguf
from benchmarks.generation.onnx_file import write_onnx
from benchmarks.generation.process import Process, tokens_of
from benchmarks.generation.results import Result, tables
from benchmarks.generation.runtimes import RUNTIMES
from benchmarks.generation.shapes import SHAPES, Array, Shape

PROMPT, KEPT, STEPS = 512, 128, 32
"""The tokens of a prompt, the tokens before the single ones, and the single ones."""


def write_files(shape: Shape, folder: Path) -> None:
    """Write the files of a decoder that the folder lacks."""
    for suffix, write in ((".onnx", write_onnx), (".gguf", write_gguf)):
        path = folder / f"{shape.name}{suffix}"
        if not path.exists():
            write(shape, path)


def measure(shape: Shape, threads: int, rounds: int, folder: Path, runtimes: Sequence[str]) -> Result:
    """The times of the runtimes, after a first round that does not count."""
    tokens, request = tokens_of(shape, PROMPT), (PROMPT, KEPT, STEPS)
    prefill: dict[str, list[float]] = {name: [] for name in runtimes}
    decode: dict[str, list[float]] = {name: [] for name in runtimes}
    logits: dict[str, Array] = {}
    with ExitStack() as stack:
        processes = {name: Process(name, shape, folder, threads) for name in runtimes}
        for process in processes.values():
            stack.callback(process.close)
        for number in range(rounds + 1):
            for name, process in processes.items():
                read, step, logits[name] = process.turn(tokens, *request)
                if number:
                    prefill[name].append(read)
                    decode[name].append(step)
    expected = logits.get("onnxruntime", next(iter(logits.values())))
    size = float(np.linalg.norm(expected))
    differences = {name: float(np.linalg.norm(each - expected)) / size for name, each in logits.items()}
    return Result(shape.name, threads, PROMPT, bandwidth(threads), prefill, decode, differences)


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="DECODER", help=f"decoders (default: {' '.join(SHAPES)})")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of turns that count (default: 7)")
    parser.add_argument("--only", nargs="+", choices=RUNTIMES, default=[*RUNTIMES], help="time only these runtimes")
    parser.add_argument("--folder", type=Path, default=Path("build/generation"), help="the folder of the files")
    found = parser.parse_args(given)
    if unknown := [name for name in found.shapes if name not in SHAPES]:
        parser.error(f"there is no decoder {unknown[0]}")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Measures, stores the results, and prints the tables."""
    asked = parsed(given)
    asked.folder.mkdir(parents=True, exist_ok=True)
    store = asked.folder / "results.json"
    stored = json.loads(store.read_text()) if store.exists() else []
    results = {(each["shape"], each["threads"]): Result(**each) for each in stored}
    for shape in [SHAPES[name] for name in asked.shapes or SHAPES]:
        write_files(shape, asked.folder)
        for threads in asked.threads:
            found = measure(shape, threads, asked.rounds, asked.folder, asked.only)
            results[shape.name, threads] = found
            print(tables([found]), flush=True)
            if asked.only == [*RUNTIMES]:
                store.write_text(json.dumps([asdict(each) for each in results.values()]))
    if asked.only == [*RUNTIMES]:
        print(tables([*results.values()]))


if __name__ == "__main__":
    main()
