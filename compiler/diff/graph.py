"""The graphs with which `compiler.diff` represents models and plans."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compiler.ir.origin import Origin

__all__ = ["Array", "Constant", "Graph", "Node", "digest_of", "prefix_of_places"]

Array = np.ndarray[Any, Any]

_DIGITS = 16
"""The number of digits of a digest in a text."""


def digest_of(data: Any) -> str:
    """The first digits of the SHA-256 of an array's elements, or of JSON data."""
    if not isinstance(data, np.ndarray) or data.dtype == object:
        plain = data.tolist() if isinstance(data, np.ndarray) else data
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:_DIGITS]
    return hashlib.sha256(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data).hexdigest()[:_DIGITS]


def prefix_of_places(names: Collection[str]) -> str:
    """The beginning of ids of values without a name. None of the names begins with it."""
    prefix = "%"
    while any(name.startswith(prefix) for name in names):
        prefix += "%"
    return prefix


@dataclass(frozen=True)
class Constant:
    """A constant: its id, dtype and shape. `read` returns the elements, an object array for strings."""

    id: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    read: Callable[[], Array] = field(repr=False, compare=False)

    @functools.cached_property
    def digest(self) -> str:
        """The digest of the elements."""
        return digest_of(self.read())

    @property
    def type(self) -> str:
        """The type, such as `float32 [8, 3]`."""
        return f"{self.dtype} {list(self.shape)}"

    @property
    def content(self) -> tuple[str, str]:
        """The type and the digest, which are equal for equal constants."""
        return self.type, self.digest


@dataclass(frozen=True)
class Node:
    """A node of a model, or a step of a plan.

    `inputs` and `outputs` are the ids of values, and `None` for a value that is left out. `attributes` maps names to
    texts, which are equal only for equal attributes.
    """

    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: Mapping[str, str]
    origin: Origin

    @property
    def name(self) -> str:
        """The id of the first output."""
        return next((each for each in self.outputs if each), "")


@dataclass(frozen=True)
class Graph:
    """The graph of a model, or the main block of a plan.

    `inputs` and `outputs` map ids to types. The id of a value is its name. A value without a name of its own has an id
    that is not in `named`.
    """

    kind: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant]
    named: frozenset[str]

    @functools.cached_property
    def producers(self) -> dict[str, int]:
        """The id of a value → the place of the node that computes it."""
        return {each: place for place, node in enumerate(self.nodes) for each in node.outputs if each}
