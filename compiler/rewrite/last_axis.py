"""Parts of a value along its last axis: the elements that a Slice, or one output of a Split, takes."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.views.slice import ranges_of
from compiler.ir.views.split import Part as SplitPart

__all__ = ["Part", "last_size", "part_of"]


@dataclass(frozen=True)
class Part:
    """The elements `start, start + step, … < stop` of `source` along its last axis, whose size is known."""

    source: ir.Value
    start: int
    stop: int
    step: int = 1


def last_size(value: ir.Value | None) -> int | None:
    """The size of the last axis; `None` if unknown."""
    if value is None or value.shape is None or len(value.shape) == 0:
        return None
    size = value.shape.dims[-1]
    return size if isinstance(size, int) else None


def part_of(value: ir.Value | None) -> Part | None:
    """The part that a value is, if a Slice of only the last axis, or a Split of it, produces the value; else `None`."""
    node = None if value is None else value.producer()
    source = None if node is None or not node.inputs else node.inputs[0]
    if value is None or source is None or source.shape is None or last_size(source) is None:
        return None
    last, ranges, split = len(source.shape) - 1, ranges_of(node), SplitPart.of(value)
    if split is not None:
        return Part(source, split.start, split.end) if split.axis == last else None
    if ranges is None or list(ranges) != [last]:
        return None
    return Part(source, ranges[last].start, ranges[last].end, ranges[last].step)
