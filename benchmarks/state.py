"""Times a token of GPT-2 through a state, beside the same token with all caches fed in and out.

`python benchmarks/state.py [MODEL.onnx]` prints, for each number of tokens in the caches, the time of a token in both
ways, and the quartiles of their ratio. Both ways take turns in one process, with one thread for each processor. The
model is GPT-2 small of transformers with random weights. If there is no such file, the program exports the model.
With `--beside FOLDER`, a checkout of another commit with its extension, the tokens with caches fed in and out run in a
process with the compiler of that commit.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compiler

if TYPE_CHECKING:
    from compiler.runtime.state import State

CONTEXTS = (128, 512, 896)
ROUNDS, RUNS = 15, 4
LAYERS, HEADS, SIZE = 12, 12, 64
TOKENS = np.arange(RUNS, dtype=np.int64).reshape(RUNS, 1, 1)
PAIRS = {f"{kind}_{at}": f"past_{2 * at + part}" for at in range(LAYERS) for part, kind in enumerate(("key", "value"))}

Array = np.ndarray[Any, Any]


def export(path: Path) -> None:
    """Write the decoder, whose caches have any number of tokens."""
    import torch

    from models.gpt2_decode import OUTPUTS, build, inputs

    shapes = {"input_ids": None, "past": tuple({2: "past"} for _ in PAIRS)}
    with torch.no_grad():
        compiler.export(build(), (*inputs().values(),), path, dynamic_shapes=shapes, outputs=OUTPUTS, check=False)


def caches(length: int) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {name: random.standard_normal((1, HEADS, length, SIZE), np.float32) for name in PAIRS.values()}


def by_hand(session: compiler.Session, tokens: Array, first: dict[str, Array]) -> list[Array]:
    """The logits of some tokens, with caches as inputs and outputs."""
    held, found = first, []
    for token in tokens:
        outputs = session.run({"input_ids": token, **held})
        held = {target: outputs[source] for source, target in PAIRS.items()}
        found.append(outputs["logits"])
    return found


def with_state(session: compiler.Session, tokens: Array, state: State) -> list[Array]:
    """The logits of some tokens, with caches in a state."""
    return [session.run({"input_ids": token}, state=state)["logits"] for token in tokens]


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / RUNS


class Beside:
    """A process with the compiler of another checkout, which computes tokens with caches fed in and out."""

    def __init__(self, checkout: Path, model: Path, threads: int) -> None:
        command = [sys.executable, __file__, str(model), "--threads", str(threads), "--serve"]
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def seconds(self, length: int) -> float:
        """The seconds of a token with so many tokens in the caches."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(length, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())


def serve(model: Path, threads: int) -> None:
    """Print the seconds of a token with caches fed in and out, for each number of tokens in the standard input."""
    session, first = compiler.load(compiler.compile(model), threads=threads), functools.cache(caches)
    for line in sys.stdin:
        held = first(int(line))
        print(seconds(lambda held=held: by_hand(session, TOKENS, held)), flush=True)


def measure(session: compiler.Session, length: int, other: Beside | None) -> tuple[list[float], list[float]]:
    """The seconds of a token by hand and with a state, in each round."""
    first = caches(length)
    state = session.new_state(first)
    expected, found = by_hand(session, TOKENS, first), with_state(session, TOKENS, state)
    assert all((a == b).all() for a, b in zip(expected, found, strict=True)), "both ways give the same bits"
    times: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS):
        times[0].append(other.seconds(length) if other else seconds(lambda: by_hand(session, TOKENS, first)))
        state.truncate(length)
        times[1].append(seconds(lambda: with_state(session, TOKENS, state)))
    return times


def main(path: Path, threads: int | None, checkout: Path | None) -> None:
    if not path.exists():
        export(path)
    session = compiler.load(compiler.compile(path, compiler.Options(state=PAIRS)), threads=threads)
    other = None if checkout is None else Beside(checkout, path, session.threads)
    print(f"{session.threads} threads; tokens in the caches, ms by hand, ms with a state, ratio")
    for length in CONTEXTS:
        hand, state = measure(session, length, other)
        low, median, high = statistics.quantiles((b / a for a, b in zip(hand, state, strict=True)), n=4)
        milliseconds = [1e3 * statistics.median(times) for times in (hand, state)]
        print(f"{length:>5} {milliseconds[0]:8.1f} {milliseconds[1]:8.1f}   {median:.2f}  {low:.2f}–{high:.2f}")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent.parent))  # for the package `models`
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, help="the number of threads (default: one for each processor)")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="a checkout of another commit")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.model, given.threads)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(given.model or Path(folder) / "gpt2.onnx", given.threads, given.beside)
