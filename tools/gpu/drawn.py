"""Plans and inputs whose numbers are drawn where they run, so that a file of such plans is small."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

LARGE = 1 << 14
"""Bytes of a constant from which on it is drawn."""


def blanked(data: bytes) -> dict[str, Any]:
    """A plan's file without its large constants of `float32`, and what `filled` needs to draw them.

    The numbers drawn are as large as the plan's on average; the checksum is that of the plan with these.
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
    """The bytes before, between and behind the constants that are drawn."""
    starts = [0, *(start + 4 * count for start, count, _ in drawn)]
    ends = [*(start for start, _, _ in drawn), len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def filled(blank: dict[str, Any]) -> bytes:
    """The plan's file with its constants drawn: the same each time."""
    parts = [blank["kept"][0]]
    for seed, (_, count, scale) in enumerate(blank["drawn"]):
        numbers = np.random.default_rng(seed).standard_normal(count, np.float32) * np.float32(scale)
        parts += [numbers.tobytes(), blank["kept"][seed + 1]]
    return b"".join(parts)


def nudged(blank: dict[str, Any]) -> bytes:
    """The file that `filled` gives with each number drawn moved by its last bit, up or down."""
    data = bytearray(filled(blank))
    for seed, (start, count, _) in enumerate(blank["drawn"]):
        signs = 2 * np.random.default_rng(seed).integers(0, 2, count, np.int8) - 1
        numbers = np.frombuffer(bytes(data[start : start + 4 * count]), np.float32)
        moved = numbers * (1 + signs * np.float32(2.0**-23))
        data[start : start + 4 * count] = moved.astype(np.float32).tobytes()
    return _sealed(bytes(data))


def _sealed(data: bytes) -> bytes:
    """The file with the checksum of what it holds."""
    end = 8 + int.from_bytes(data[:8], "little")
    plan = json.loads(data[8:end])["__metadata__"]
    digest = hashlib.sha256(plan["plan"].encode() + data[end:]).hexdigest()
    return data[:end].replace(plan["sha256"].encode(), digest.encode(), 1) + data[end:]


Drawn = tuple[str, tuple[int, ...], int]
"""An input's name and shape, and the bound of its whole numbers; 0 for normal noise in `float32`."""


def inputs(given: Sequence[Drawn]) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs of a run: the same each time."""
    return {name: _input(seed, shape, bound) for seed, (name, shape, bound) in enumerate(given)}


def _input(seed: int, shape: tuple[int, ...], bound: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(1000 + seed)
    return generator.integers(bound, size=shape) if bound else generator.standard_normal(shape, np.float32)
