"""Plans and inputs whose numbers are generated on the machine that runs them, so that the bundle is small."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

LARGE = 1 << 14
"""The least size, in bytes, of constants that are generated."""


def blanked(data: bytes) -> dict[str, Any]:
    """A plan's file without its large `float32` constants, and the data from which `filled` generates new ones.

    The generated numbers have the standard deviation of the plan's. The checksum includes them.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    drawn = []
    for entry in header.values():
        begin, behind = entry.get("data_offsets", (0, 0))
        if entry.get("dtype") == "F32" and behind - begin >= LARGE:
            numbers = np.frombuffer(data, np.float32, (behind - begin) // 4, end + begin)
            drawn.append((end + begin, numbers.size, float(numbers.std())))
    drawn.sort()
    blank = {"kept": _kept(data, drawn), "drawn": drawn}
    return {**blank, "kept": _kept(_sealed(filled(blank)), drawn)}


def _kept(data: bytes, drawn: Sequence[tuple[int, int, float]]) -> list[bytes]:
    """The bytes before, between and after the generated constants."""
    starts = [0, *(start + 4 * count for start, count, _ in drawn)]
    ends = [*(start for start, _, _ in drawn), len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def filled(blank: dict[str, Any]) -> bytes:
    """The plan's file with generated constants, which are the same in every call."""
    parts = [blank["kept"][0]]
    for seed, (_, count, scale) in enumerate(blank["drawn"]):
        numbers = np.random.default_rng(seed).standard_normal(count, np.float32) * np.float32(scale)
        parts += [numbers.tobytes(), blank["kept"][seed + 1]]
    return b"".join(parts)


def nudged(blank: dict[str, Any]) -> bytes:
    """The file of `filled`, with each generated number changed by one unit in the last place, up or down."""
    data = bytearray(filled(blank))
    for seed, (start, count, _) in enumerate(blank["drawn"]):
        signs = 2 * np.random.default_rng(seed).integers(0, 2, count, np.int8) - 1
        numbers = np.frombuffer(bytes(data[start : start + 4 * count]), np.float32)
        moved = numbers * (1 + signs * np.float32(2.0**-23))
        data[start : start + 4 * count] = moved.astype(np.float32).tobytes()
    return _sealed(bytes(data))


def _sealed(data: bytes) -> bytes:
    """The file with a valid checksum."""
    end = 8 + int.from_bytes(data[:8], "little")
    plan = json.loads(data[8:end])["__metadata__"]
    digest = hashlib.sha256(plan["plan"].encode() + data[end:]).hexdigest()
    return data[:end].replace(plan["sha256"].encode(), digest.encode(), 1) + data[end:]


Drawn = tuple[str, tuple[int, ...], int]
"""An input's name and shape, and the bound of its integers; 0 for normally distributed `float32`."""


def inputs(given: Sequence[Drawn]) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs of a run, which are the same in every call."""
    return {name: _input(seed, shape, bound) for seed, (name, shape, bound) in enumerate(given)}


def _input(seed: int, shape: tuple[int, ...], bound: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(1000 + seed)
    return generator.integers(bound, size=shape) if bound else generator.standard_normal(shape, np.float32)
