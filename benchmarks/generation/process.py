"""A process with one runtime, which reads tokens when it is asked."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generation.runtimes import RUNTIMES, Runtime
from benchmarks.generation.shapes import SHAPES, Array, Shape

__all__ = ["Process", "tokens_of", "turn"]


def tokens_of(shape: Shape, count: int) -> Array:
    """Seeded tokens, `int64 [count]`."""
    return np.random.default_rng(0).integers(0, shape.vocabulary, count)


def turn(runtime: Runtime, tokens: Array, prompt: int, kept: int, steps: int) -> tuple[float, float, Array]:
    """The seconds of a prompt of so many tokens; those of a token after the first ones, `kept`; and its logits."""
    runtime.truncate(0)
    began = time.perf_counter()
    runtime.read(tokens[:prompt])
    read = time.perf_counter() - began
    runtime.truncate(kept)
    began = time.perf_counter()
    for token in tokens[kept : kept + steps]:
        logits = runtime.read(np.array([token]))
    return read, (time.perf_counter() - began) / steps, np.array(logits)


def _serve(pipe: Connection, runtime: str, shape: str, folder: Path, threads: int) -> None:
    """Answers requests for turns until the pipe closes."""
    found = RUNTIMES[runtime](SHAPES[shape], folder, threads)
    while request := pipe.recv():
        pipe.send(turn(found, *request))


class Process:
    """A process with one runtime."""

    def __init__(self, runtime: str, shape: Shape, folder: Path, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, runtime, shape.name, folder, threads), daemon=True)
        self._process.start()
        other.close()

    def turn(self, *request: Any) -> tuple[float, float, Array]:
        """What `turn` returns.

        Raises:
            EOFError: the process has ended with an error.
        """
        self._pipe.send(request)
        found: tuple[float, float, Array] = self._pipe.recv()
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join()
