"""The price of nodes: how many there are, the memory that they write, and the multiply-adds of convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.graph import static_shape
from compiler.ir.views.window import WindowView

__all__ = ["Price"]

_VIEWS = frozenset(["Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze"])
"""The operators that write no tensor."""
_UNITS = ("", "k", "M", "G", "T")


@dataclass(frozen=True)
class Price:
    """The price of nodes. Sizes that are not known count as 1."""

    nodes: int
    written: int
    """The bytes of all results."""
    multiply_adds: int
    """The multiply-adds of convolutions."""
    is_known: bool
    """Whether all sizes are known."""

    @classmethod
    def of(cls, nodes: Iterable[ir.Node]) -> Price:
        """The price of nodes whose results have types and shapes."""
        nodes = list(nodes)
        values = [value for node in nodes for value in node.outputs if value.shape is not None and value.dtype]
        written = [value for value in values if (node := value.producer()) and node.op_type not in _VIEWS]
        return cls(
            nodes=len(nodes),
            written=sum(math.ceil(_elements(each) * each.dtype.itemsize) for each in written if each.dtype),
            multiply_adds=sum(_multiply_adds(node) for node in nodes),
            is_known=all(static_shape(each) is not None for each in written),
        )

    def __sub__(self, other: Price) -> Price:
        """The price of these nodes beyond that of the `other` ones."""
        return Price(
            self.nodes - other.nodes,
            self.written - other.written,
            self.multiply_adds - other.multiply_adds,
            self.is_known and other.is_known,
        )

    def __str__(self) -> str:
        """A difference, for people."""
        sizes = "" if self.is_known else ", if every unknown size is 1"
        more = _metric(self.multiply_adds).rstrip()
        return f"{self.nodes:+} nodes, {_metric(self.written)}B written, {more} multiply-adds{sizes}"


def _metric(number: int) -> str:
    """A difference with a sign, three digits and a prefix: `+12.6 M`."""
    unit = min(int(math.log10(abs(number)) / 3), len(_UNITS) - 1) if number else 0
    return f"{number / 1000**unit:+.3g} {_UNITS[unit]}"


def _elements(value: ir.Value | None) -> int:
    dims = () if value is None or value.shape is None else value.shape.dims
    return math.prod(dim if isinstance(dim, int) else 1 for dim in dims)


def _multiply_adds(node: ir.Node) -> int:
    """`Y [N, M, …]` needs C/groups · kernel for each element; a transposed convolution for each element of `X`."""
    view = WindowView[ir.Value].of(node)
    weights = None if view is None else static_shape(view.weights)
    if view is None or weights is None or not weights or not weights[0]:
        return 0
    image = view.x if node.op_type == "ConvTranspose" else node.outputs[0]
    return _elements(image) * math.prod(weights[1:])
