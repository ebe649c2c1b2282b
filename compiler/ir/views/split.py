"""Split and SplitToSequence: the axis, the sizes of the parts, and the range of each part."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.views.source import Listed, Source, V, View, ints_of, resolved

__all__ = ["Part", "SplitToSequenceView", "SplitView"]


@dataclass(frozen=True)
class SplitView(View[V]):
    """`Split`: the sizes are an attribute before version 13, and an input since; without sizes, parts are equal.

    Source: https://onnx.ai/onnx/operators/onnx__Split.html
    """

    operators = (("", "Split"),)

    x: V | None
    axis: int
    sizes: Listed[V, int] | None
    parts: int | None
    """The attribute `num_outputs`, which version 18 added."""

    @classmethod
    def read(cls, node: Source[V]) -> SplitView[V]:
        """The view of a Split."""
        parts = node.int("num_outputs", None) if node.is_since(18, "split") else None
        return cls(node.optional(0), node.int("axis", 0), ints_of(node, "split", 1, 13), parts)


@dataclass(frozen=True)
class SplitToSequenceView(View[V]):
    """`SplitToSequence`: a scalar `size` is the size of every part but the last, and a 1-D `size` lists the sizes.

    Without sizes, parts have size 1, and `keepdims=0` drops the axis.

    Source: https://onnx.ai/onnx/operators/onnx__SplitToSequence.html
    """

    operators = (("", "SplitToSequence"),)

    x: V | None
    axis: int
    size: V | None
    known: int | tuple[int, ...] | None
    """The elements of `size`, if they are constant; 1 without sizes."""
    keeps_axis: bool

    @classmethod
    def read(cls, node: Source[V]) -> SplitToSequenceView[V]:
        """The view of a SplitToSequence."""
        size, array = node.optional(1), node.constant(1)
        known: int | tuple[int, ...] | None = 1 if size is None else None
        keeps_axis = node.flag("keepdims", True)
        if array is not None:
            known = int(array) if array.ndim == 0 else tuple(int(each) for each in array.ravel())
        return cls(node.optional(0), node.int("axis", 0), size, known, keeps_axis or size is not None)

    def sizes(self, total: int | None) -> tuple[int, ...] | None:
        """The sizes of the parts of an axis of size `total`; `None` if unknown."""
        if isinstance(self.known, tuple):
            return self.known
        if total is None or self.known is None or self.known <= 0:
            return None
        return tuple(min(self.known, total - begin) for begin in range(0, total, self.known))


@dataclass(frozen=True)
class Part:
    """An output of a Split: the elements `start … end - 1` of `source` along `axis`."""

    source: ir.Value
    axis: int
    start: int
    end: int

    @staticmethod
    def of(value: ir.Value) -> Part | None:
        """The part that a value is; `None` if it is not a Split's output, or if an earlier part's size is unknown."""
        node = value.producer()
        view = SplitView[ir.Value].of(node)
        if node is None or view is None or view.x is None or view.x.shape is None:
            return None
        axis = resolved(view.axis, len(view.x.shape))
        shapes = [each.shape for each in node.outputs[: node.outputs.index(value) + 1]]
        sizes = [None if shape is None or axis is None or axis >= len(shape) else shape.dims[axis] for shape in shapes]
        numbers = [each for each in sizes if isinstance(each, int)]
        if axis is None or len(numbers) < len(sizes):
            return None
        return Part(view.x, axis, sum(numbers[:-1]), sum(numbers))
