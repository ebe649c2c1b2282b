"""The header of a plan file: JSON at the beginning of a file in the format of safetensors.

Source: https://huggingface.co/docs/safetensors, section "Format".
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

__all__ = ["begins_as_plan", "metadata_in", "read_header"]


def begins_as_plan(head: bytes) -> bool:
    """Whether the first nine bytes of a file are those of a plan: the length of its header, then JSON."""
    return head[4:9] == b"\0\0\0\0{"  # the high bytes of the length, and the first character of JSON


def read_header(file: BinaryIO) -> dict[str, Any]:
    """Read the header of a valid plan. The position in the file is then that of the first constant."""
    header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header


def metadata_in(file: BinaryIO) -> dict[str, str]:
    """The model's metadata in a valid plan."""
    metadata: dict[str, str] = json.loads(read_header(file)["__metadata__"]["plan"])["metadata"]
    return metadata
