"""Parts of a value along its last axis: the elements that a Slice, or one output of a Split, takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of

__all__ = ["Part", "last_size", "part_of"]


@dataclass(frozen=True)
class Part:
    """The elements `start, start + step, … < stop` of `source` along its last axis, whose size is known."""

    source: ir.Value
    start: int
    stop: int
    step: int = 1


def last_size(value: ir.Value | None) -> int | None:
    """The size of the last axis, where it is known."""
    if value is None or value.shape is None or len(value.shape) == 0:
        return None
    size = value.shape.dims[-1]
    return size if isinstance(size, int) else None


def part_of(value: ir.Value | None) -> Part | None:
    """The part that a Slice of the last axis alone, or a Split of it, made the value of; `None` if none did."""
    node = None if value is None else value.producer()
    source = None if node is None or not node.inputs or node.domain else node.inputs[0]
    size = last_size(source)
    if value is None or node is None or source is None or source.shape is None or size is None:
        return None
    if node.op_type == "Slice":
        return _of_slice(node, source, size)
    return _of_split(node, value, source) if node.op_type == "Split" else None


def _of_slice(node: ir.Node, source: ir.Value, size: int) -> Part | None:
    given = [constant_of(each) for each in node.inputs[1:]]
    if len(given) < 3 or any(each is None or each.size != 1 for each in given):
        return None
    start, stop, axis, *steps = (int(each.item()) for each in given if each is not None)
    step = steps[0] if steps else 1
    if source.shape is None or axis % len(source.shape) != len(source.shape) - 1 or step < 1:
        return None
    start, stop = (min(max(place + size if place < 0 else place, 0), size) for place in (start, stop))
    return Part(source, start, stop, step)


def _of_split(node: ir.Node, value: ir.Value, source: ir.Value) -> Part | None:
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    sizes = [last_size(each) for each in node.outputs[: node.outputs.index(value) + 1]]
    numbers = [size for size in sizes if size is not None]
    if source.shape is None or axis % len(source.shape) != len(source.shape) - 1 or len(numbers) < len(sizes):
        return None
    return Part(source, int(np.sum(numbers[:-1])), int(np.sum(numbers)))
