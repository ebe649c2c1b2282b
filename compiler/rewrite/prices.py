"""The price of nodes: how many there are, the memory that they write, and the multiply-adds of convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.graph import static_shape
from compiler.ir.symbols import shown
from compiler.ir.views.window import WindowView

__all__ = ["Price"]

_VIEWS = frozenset(["Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze"])
"""The operators that write no tensor."""
_UNITS = ("", "k", "M", "G", "T")


@dataclass(frozen=True)
class Price:
    """The price of nodes, if each symbol of their sizes is 1."""

    nodes: int
    written: int
    """The bytes of all results."""
    multiply_adds: int
    """The multiply-adds of convolutions."""
    symbols: frozenset[str]
    """The symbols of the sizes."""

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
            symbols=frozenset(symbol for value in written for symbol in _symbols(value)),
        )

    def __sub__(self, other: Price) -> Price:
        """The price of these nodes beyond that of the `other` ones."""
        return Price(
            self.nodes - other.nodes,
            self.written - other.written,
            self.multiply_adds - other.multiply_adds,
            self.symbols | other.symbols,
        )

    def __str__(self) -> str:
        """A difference, for people."""
        sizes = f" for {' = '.join(map(shown, sorted(self.symbols)))} = 1" if self.symbols else ""
        more = _metric(self.multiply_adds).rstrip()
        return f"{self.nodes:+} nodes, {_metric(self.written)}B written, {more} multiply-adds{sizes}"


def _metric(number: int) -> str:
    """A difference with a sign, three digits and a prefix: `+12.6 M`."""
    unit = min(int(math.log10(abs(number)) / 3), len(_UNITS) - 1) if number else 0
    return f"{number / 1000**unit:+.3g} {_UNITS[unit]}"


def _elements(value: ir.Value | None) -> int:
    dims = () if value is None or value.shape is None else value.shape.dims
    return math.prod(dim if isinstance(dim, int) else _with_ones(dim) for dim in dims)


def _with_ones(dim: ir.SymbolicDim) -> int:
    """A size if its symbols are 1; an unknown size is 1."""
    if dim.value is None or dim.value.isidentifier():
        return 1
    found = dim.evaluate(dict.fromkeys(dim.free_symbols(), 1))
    return found if isinstance(found, int) else 1


def _symbols(value: ir.Value) -> set[str]:
    dims = () if value.shape is None else value.shape.dims
    return {symbol for dim in dims if not isinstance(dim, int) for symbol in dim.free_symbols()}


def _multiply_adds(node: ir.Node) -> int:
    """`Y [N, M, …]` needs C/groups · kernel for each element; a transposed convolution for each element of `X`."""
    view = WindowView[ir.Value].of(node)
    weights = None if view is None else static_shape(view.weights)
    if view is None or weights is None or not weights or not weights[0]:
        return 0
    image = view.x if node.op_type == "ConvTranspose" else node.outputs[0]
    return _elements(image) * math.prod(weights[1:])
