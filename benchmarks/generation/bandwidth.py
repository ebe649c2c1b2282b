"""The bandwidth of the memory: how fast threads read an array that no cache holds."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

__all__ = ["bandwidth"]

SIZE = 1 << 30
"""The bytes of the array."""
ROUNDS = 5


def bandwidth(threads: int, size: int = SIZE) -> float:
    """The bandwidth in bytes per second. In each round, every thread reads its part once; the best round counts."""
    data = np.ones(size // 4, np.uint32)
    parts = np.array_split(data, threads)
    with ThreadPoolExecutor(threads) as pool:
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            list(pool.map(np.max, parts))  # NumPy reads with the widest registers, and does not hold the interpreter
            times.append(time.perf_counter() - began)
    return data.nbytes / min(times)
