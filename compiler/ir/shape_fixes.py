"""Corrections of the shapes that the library infers for one node.

The library assumes that slices are within unknown sizes, that unknown sizes are not 1, that an unknown shape broadcasts
to the shape of an Expand, and that two symbols that broadcast to each other are equal. None of this is always true. It
also gives elements to the results of nodes that fail, and to results that overflow. It cannot read sizes that it rounds
up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from compiler.ir.onnx_schema import ELEMENTWISE
from compiler.ir.shape_library import ELEMENTS, Context, forget_elements
from compiler.ir.views.reshape import SqueezeView
from compiler.ir.views.slice import Range, SliceView

__all__ = ["CORRECTED", "Corrections"]

Dim = int | ir.SymbolicDim

_BOUNDED = re.compile(r"Min\((?P<bound>\d+), (?P<size>.+)\)")
_HOLDING_SIZES = {ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE}
"""The types that hold sizes and their differences, which may be negative."""
_MANTISSAS = {ir.DataType.FLOAT: 24, ir.DataType.DOUBLE: 53}
"""The bits of a float's mantissa: larger integers may be rounded."""
_CEILING = "ceiling("
"""A function that the library writes and cannot read."""
_LONGEST = 100
"""The limit of expressions of sizes, in characters. Simplifying longer ones would take too much time."""


class Corrections:
    """Corrects the shapes of a context, node by node."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._names: dict[str, Dim] = {}

    def correct(self, node: ir.Node) -> None:
        """Corrects the inferred shapes and sizes of a node's outputs."""
        for correct in CORRECTED.get((node.domain, node.op_type), ()):
            correct(self._context, node)
        for value in node.outputs:
            if not _are_possible(self._elements(value), value):
                forget_elements(self._context, value)
            self._simplify(value)

    def _elements(self, value: ir.Value) -> Sequence[Dim] | None:
        return self._context.get_symbolic_value(value) if ELEMENTS in value.metadata_props else None

    def _simplify(self, value: ir.Value) -> None:
        if value.shape is not None and any(map(_needs_simplification, value.shape.dims)):
            value.shape = ir.Shape(map(self._simplified, value.shape.dims))
        sizes = self._elements(value)
        if sizes is not None and any(map(_needs_simplification, sizes)):
            self._context.set_symbolic_value(value, [self._simplified(size) for size in sizes])

    def _simplified(self, size: Dim) -> Dim:
        """The result of an exact division, such as `(64*N + 64)/(16*N + 16)`; a new symbol for a long expression."""
        if isinstance(size, int) or not _needs_simplification(size):
            return size
        text = str(size)
        if text not in self._names:
            self._names[text] = self._divided(size)
        return self._names[text]

    def _divided(self, size: ir.SymbolicDim) -> Dim:
        text = str(size)
        if text.isdecimal():
            return int(text)
        if _CEILING in text:
            floored = _floored(size)
            return _unknown(self._context) if floored is None or len(str(floored)) > _LONGEST else floored
        if _is_quotient(text) and len(text) <= 2 * _LONGEST:
            quotient = size.simplify()
            found = str(quotient)
            if found.isdecimal():
                return int(found)
            if "/" not in found and len(found) <= _LONGEST:
                return quotient
        return _unknown(self._context) if len(text) > _LONGEST else size


def _needs_simplification(size: Dim) -> bool:
    """Whether an expression is too long, a number, rounded up, or a quotient, which may be without remainder."""
    text = None if isinstance(size, int) else size.value
    return text is not None and (text.isdecimal() or len(text) > _LONGEST or _is_quotient(text) or _CEILING in text)


def _floored(size: ir.SymbolicDim) -> ir.SymbolicDim | None:
    """Writes `ceiling(a/b)` as `floor((a + b - 1)/b)`; `None` if that is impossible."""
    import sympy

    def floor(rounded: sympy.Expr) -> sympy.Expr:
        dividend, divisor = sympy.fraction(sympy.together(rounded))
        is_whole = dividend.is_integer and divisor.is_integer
        return sympy.floor(rounded + (divisor - 1) / divisor) if is_whole else sympy.ceiling(rounded)

    expression = size._expr  # the parser, which reads the text, does not know the function
    if expression is None:
        return None
    floored = ir.SymbolicDim(expression.replace(sympy.ceiling, floor))
    return None if _CEILING in str(floored) else floored


def _is_quotient(text: str) -> bool:
    """Whether an expression divides by an expression."""
    return "/(" in text


def _are_possible(elements: Sequence[Dim] | None, value: ir.Value) -> bool:
    """Whether a value can have these elements: as many as its shape demands, and numbers that its type holds."""
    if elements is None:
        return True
    shape = None if value.shape is None else value.shape.dims
    sizes = [size for size in shape or () if isinstance(size, int)]
    is_counted = shape is None or len(sizes) < len(shape) or prod(sizes) == len(elements)
    return is_counted and _are_held(elements, value.dtype)


def _are_held(elements: Sequence[Dim], dtype: ir.DataType | None) -> bool:
    """Whether an element type holds all known elements exactly."""
    numbers = [each for each in elements if isinstance(each, int)]
    if dtype is None:
        return True
    if dtype in _MANTISSAS:
        return all(abs(number) <= 1 << _MANTISSAS[dtype] for number in numbers)
    if not dtype.is_integer():
        return True
    limits = np.iinfo(dtype.numpy()) if dtype.bitwidth >= 8 else None
    return limits is None or all(limits.min <= number <= limits.max for number in numbers)


def _check_split(context: Context, node: ir.Node) -> None:
    """Forgets the elements of parts that are not as long together as the vector, because such a node fails."""
    values = (*node.inputs[:1], *node.outputs)
    shapes = [None if value is None or value.shape is None else value.shape.dims for value in values]
    if any(shape is not None and len(shape) == 1 for shape in shapes):
        whole, *parts = [shape[0] if shape and isinstance(shape[0], int) else None for shape in shapes]
        sizes = [size for size in parts if size is not None]
        if whole is None or len(sizes) < len(parts) or sum(sizes) != whole:
            for value in node.outputs:
                forget_elements(context, value)


def _set_type_of_scale(_context: Context, node: ir.Node) -> None:
    """Sets the output's element type to that of the second input, the scale. The library uses that of the first."""
    scale = node.inputs[1]
    if scale is not None and scale.dtype is not None:
        node.outputs[0].dtype = scale.dtype


def _follow_quotient(context: Context, node: ir.Node) -> None:
    """Follows sizes through a division by a positive number. The library does so only for known numbers."""
    sizes, divisors = (None if value is None else context.get_symbolic_value(value) for value in node.inputs)
    if not sizes or divisors is None or len(divisors) != 1 or not all(map(_is_no_difference, sizes)):
        return
    divisor = divisors[0]
    if isinstance(divisor, int) and divisor > 0:
        context.set_symbolic_value(node.outputs[0], [size // divisor for size in sizes])


def _follow_cast(context: Context, node: ir.Node) -> None:
    """Follows sizes through casts to signed types of 32 bits or more. The library follows any Cast and no CastLike."""
    given, result = node.inputs[0], node.outputs[0]
    sizes = None if given is None else context.get_symbolic_value(given)
    if sizes is not None and result.dtype in _HOLDING_SIZES and _are_held(sizes, result.dtype):
        context.set_symbolic_value(result, sizes)
    else:
        forget_elements(context, result)


def _is_no_difference(size: Dim) -> bool:
    """Whether a size cannot be negative, so that its quotient is the same rounded down and rounded toward zero."""
    return size >= 0 if isinstance(size, int) else size.value is not None and "-" not in size.value


def _follow_choice(context: Context, node: ir.Node) -> None:
    """Follows sizes through `Where(Equal(a, b), x, y)`, which exporters write to replace sizes of -1."""
    condition, *branches = node.inputs
    equal = None if condition is None else condition.producer()
    if equal is None or equal.op_identifier() != ("", "Equal", ""):
        return
    given = [None if value is None else context.get_symbolic_value(value) for value in (*equal.inputs, *branches)]
    known = [sizes for sizes in given if sizes is not None]
    length = max(map(len, known), default=0)
    if len(known) < 4 or length == 0 or any(len(sizes) not in (1, length) for sizes in known):
        return
    rows = zip(*(sizes * (length // len(sizes)) for sizes in known), strict=True)
    chosen = [_chosen(a, b, x, y) for a, b, x, y in rows]
    found = [size for size in chosen if size is not None]
    if len(found) == len(chosen):
        context.set_symbolic_value(node.outputs[0], found)


def _chosen(a: Dim, b: Dim, x: Dim, y: Dim) -> Dim | None:
    """`x` if `a` equals `b`, `y` if it does not; `None` if unknown."""
    if isinstance(a, int) and isinstance(b, int):
        return x if a == b else y
    if x == y:
        return x
    size, number = (b, a) if isinstance(a, int) else (a, b)
    return y if isinstance(number, int) and number < 0 and _is_no_difference(size) else None


def _bound_slice(context: Context, node: ir.Node) -> None:
    """Bounds a slice of a dimension of unknown size, which may end before the slice's bounds."""
    given, result = node.inputs[0], node.outputs[0]
    if given is None or given.shape is None or result.shape is None or len(given.shape) != len(result.shape):
        return
    view, dims = SliceView[ir.Value].of(node), list(result.shape.dims)
    ranges = {} if view is None else view.ranges(given.shape.dims) or {}
    for axis, (size, inferred) in enumerate(zip(given.shape.dims, result.shape.dims, strict=True)):
        if isinstance(size, ir.SymbolicDim) and isinstance(inferred, int) and inferred > 0:
            starts_at_first = ranges.get(axis) == Range(0, inferred) and size.value is not None
            dims[axis] = ir.SymbolicDim(f"Min({inferred}, {size.value})") if starts_at_first else _unknown(context)
    result.shape = ir.Shape(dims)


def _forget_start(context: Context, node: ir.Node) -> None:
    """Forgets the size and elements of a backward slice that starts before the first element.

    Such a slice begins with the first element. The library computes an empty slice.
    """
    view, given, result = SliceView[ir.Value].of(node), node.inputs[0], node.outputs[0]
    if view is None or given is None or given.shape is None or result.shape is None:
        return
    dims = list(result.shape.dims)
    for axis, (start, _, step) in (view.bounds(len(dims)) or {}).items():
        size = given.shape[axis]
        if step < 0 and isinstance(size, int) and start < -size:
            dims[axis] = _unknown(context)
            forget_elements(context, result)
    result.shape = ir.Shape(dims)


def _forget_rank(_context: Context, node: ir.Node) -> None:
    """Forgets the rank of a Squeeze without axes and with an unknown size, because it drops dimensions of size 1."""
    view = SqueezeView[ir.Value].of(node)
    if view is None or view.axes is not None or view.x is None or view.x.shape is None:
        return
    if not view.x.shape.is_static():
        node.outputs[0].shape = None


def _forget_expansion(_context: Context, node: ir.Node) -> None:
    """Forgets the shape of an Expand of an unknown shape, which may be larger than the shape that the node states."""
    if node.inputs[0] is None or node.inputs[0].shape is None:
        node.outputs[0].shape = None


def _broadcast(context: Context, node: ir.Node) -> None:
    """Corrects broadcast dimensions: either of two symbols that broadcast to each other may be 1."""
    shapes = [None if value is None else value.shape for value in node.inputs]
    dims = [[] if shape is None else list(shape.dims) for shape in shapes]
    if node.op_type == "Expand" and len(node.inputs) > 1 and node.inputs[1] is not None:
        dims[1] = list(context.get_symbolic_value(node.inputs[1]) or ())
    result = node.outputs[0]
    if result.shape is not None:
        joined = [_joined(dims, axis - len(result.shape)) for axis in range(len(result.shape))]
        inferred = zip(joined, result.shape.dims, strict=True)
        result.shape = ir.Shape(_unknown(context) if many else one or dim for (one, many), dim in inferred)


def _joined(shapes: Sequence[Sequence[Dim]], axis: int) -> tuple[ir.SymbolicDim | None, bool]:
    """The symbol of the broadcast dimension at a negative axis, or `None`; and whether the dimension is unknown."""
    met = [dims[axis] for dims in shapes if len(dims) >= -axis]
    symbols = {dim.value: dim for dim in met if not isinstance(dim, int)}
    if len(symbols) < 2 or any(dim != 1 for dim in met if isinstance(dim, int)):
        return None, False
    left = [dim for text, dim in symbols.items() if not any(_is_bounded(text, other) for other in symbols)]
    return (left[0], False) if len(left) == 1 else (None, True)


def _is_bounded(text: str | None, other: str | None) -> bool:
    """Whether `text` is the minimum of `other` and a number above 1, so that if one of them is 1, both are."""
    bounded = _BOUNDED.fullmatch(text or "")
    return bounded is not None and bounded["size"] == other and int(bounded["bound"]) > 1


def _unknown(context: Context) -> ir.SymbolicDim:
    symbol: ir.SymbolicDim = context.new_symbolic_dim()
    return symbol


def _keep_emptiness(context: Context, node: ir.Node) -> None:
    """The shape of an empty ConstantOfShape. The library forgets the sizes if one of them is a symbol.

    Attention with a shared cache has empty keys.
    """
    given, result = node.inputs[0], node.outputs[0]
    sizes = None if given is None or result.shape is not None else context.get_symbolic_value(given)
    if sizes is not None and 0 in sizes:
        result.shape = ir.Shape(sizes)


def _extract_features(context: Context, node: ir.Node) -> None:
    """Sets the shape `[…, I]` for `X: […, C]` and I indices of any shape. A vector counts as one row."""
    x, indices = node.inputs
    if x is None or indices is None or x.shape is None:
        node.outputs[0].shape = None
        return
    sizes = None if indices.shape is None else indices.shape.dims
    known = [size for size in sizes or () if isinstance(size, int)]
    if sizes is not None and len(known) == len(sizes):
        count: Dim = prod(known)
    else:
        count = sizes[0] if sizes is not None and len(sizes) == 1 else _unknown(context)
    node.outputs[0].shape = ir.Shape([*(x.shape.dims[:-1] if len(x.shape) > 1 else [1]), count])


_CORRECTED: dict[str, tuple[Callable[[Context, ir.Node], None], ...]] = {
    **dict.fromkeys(ELEMENTWISE, (_broadcast,)),
    **dict.fromkeys(("Cast", "CastLike"), (_follow_cast,)),
    "ConstantOfShape": (_keep_emptiness,),
    "Div": (_follow_quotient, _broadcast),
    "Expand": (_forget_expansion, _broadcast),
    "RMSNormalization": (_set_type_of_scale,),
    "Slice": (_bound_slice, _forget_start),
    "Split": (_check_split,),
    "Squeeze": (_forget_rank,),
    "Where": (_follow_choice, _broadcast),
}
CORRECTED = {("", op_type): corrections for op_type, corrections in _CORRECTED.items()}
CORRECTED["ai.onnx.ml", "ArrayFeatureExtractor"] = (_extract_features,)
"""The operators, by domain and name, whose inferred outputs are wrong or too vague, and their corrections, in order."""
