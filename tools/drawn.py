"""Plans whose large constants are drawn at random where they are wanted, so that a file of such plans is small."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

LARGE = 1 << 14
"""Bytes of a constant from which on it is drawn."""


def blanked(data: bytes) -> dict[str, Any]:
    """A plan's file with zeros for its large constants of `float32`, and what `filled` needs to draw them.

    The numbers drawn are as large as the plan's on average; the checksum is that of the plan with these.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    body = np.frombuffer(data, np.uint8, offset=end).copy()
    header = json.loads(data[8:end])
    plan = header["__metadata__"]
    drawn = {}
    for name, entry in header.items():
        begin, behind = entry.get("data_offsets", (0, 0))
        if entry.get("dtype") == "F32" and behind - begin >= LARGE:
            numbers = body[begin:behind].view(np.float32)
            drawn[name] = (end + begin, numbers.size, float(numbers.std()))
            numbers[:] = 0
    blank = {"plan": data[:end] + body.tobytes(), "drawn": list(drawn.values())}
    digest = hashlib.sha256(plan["plan"].encode() + memoryview(filled(blank))[end:]).hexdigest()
    blank["plan"] = blank["plan"].replace(plan["sha256"].encode(), digest.encode(), 1)
    return blank


def filled(blank: dict[str, Any]) -> bytes:
    """The plan's file with its constants drawn: the same each time."""
    data = bytearray(blank["plan"])
    for seed, (start, count, scale) in enumerate(blank["drawn"]):
        numbers = np.random.default_rng(seed).standard_normal(count, np.float32) * np.float32(scale)
        data[start : start + numbers.nbytes] = numbers.tobytes()
    return bytes(data)
