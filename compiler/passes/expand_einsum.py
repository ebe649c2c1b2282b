"""Replaces an Einsum of two operands with MatMul if it is a matrix product, so that later passes recognize it."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.views.einsum import EinsumView
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import inverse, reordered_shape, typed
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["expand_einsum"]


_TYPES = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


@dataclass(frozen=True)
class _Product:
    """A batched matrix product: the letters of its operands and result, and whether it swaps the operands."""

    left: str
    right: str
    result: str
    is_swapped: bool


@dataclass(frozen=True)
class _Einsum:
    """The letters of both inputs and of the result, and the equivalent product."""

    a: str
    b: str
    result: str
    product: _Product


class EinsumToMatMul(FindingRule[_Einsum]):
    """`Einsum(a, b)` of `…id,…jd->…ij`, in any order of letters → `MatMul` of `a` and `b`, transposed if needed."""

    pattern = Op("Einsum", Var("a"), Var("b"))

    def check(self, match: Match) -> _Einsum | str:
        """Each operand has one letter of its own, one letter is summed over, and shared letters have equal sizes."""
        terms = _terms(match.root)
        product = None if terms is None else _product(*terms)
        if terms is None or product is None:
            return "it is not a matrix product"
        if match["a"].dtype not in _TYPES:
            return f"the type is {match['a'].dtype}"
        sizes = [match[name].shape for name in ("a", "b")]
        if any(shape is None or len(shape) != len(term) for shape, term in zip(sizes, terms, strict=False)):
            return "the ranks are not known"
        found = [dict(zip(term, shape or (), strict=False)) for shape, term in zip(sizes, terms, strict=False)]
        shared = found[0].keys() & found[1].keys()
        is_same = all(_is_known(found[0][letter]) and found[0][letter] == found[1][letter] for letter in shared)
        return _Einsum(*terms, product) if is_same else "sizes are not known to be the same on both sides"

    def rewrite(self, match: Match, found: _Einsum, new: Rewriter) -> ir.Value:
        """The product between transposes."""
        product = found.product
        sides = [(match["a"], found.a), (match["b"], found.b)]
        (left, left_term), (right, right_term) = reversed(sides) if product.is_swapped else sides
        left = _ordered(left, left_term, product.left, new)
        right = _ordered(right, right_term, product.right, new)
        output, order = match.root.outputs[0], tuple(product.result.index(letter) for letter in found.result)
        result = typed(
            new.op("MatMul", left, right, version=13), output.type, reordered_shape(output.shape, inverse(order))
        )
        return _ordered(result, product.result, found.result, new)


def _terms(node: ir.Node) -> tuple[str, str, str] | None:
    """The letters of both inputs and of the result; `None` if a letter occurs twice in one of them."""
    view = EinsumView[ir.Value].of(node, complete=True)
    if view is None:
        return None
    sides, arrow, result = view.equation.replace(" ", "").partition("->")
    terms = (*sides.split(","), result)
    if not arrow or len(terms) != 3 or any(len(set(term)) < len(term) or "." in term for term in terms):
        return None
    return terms[0], terms[1], terms[2]


def _product(a: str, b: str, result: str) -> _Product | None:
    stack = [letter for letter in result if letter in a and letter in b]
    rows, columns = ([letter for letter in result if letter in side and letter not in stack] for side in (a, b))
    summed = [letter for letter in a if letter in b and letter not in result]
    if not len(rows) == len(columns) == len(summed) == 1 or {*a, *b} != {*stack, *rows, *columns, *summed}:
        return None
    is_swapped = result.index(columns[0]) < result.index(rows[0])
    first, last = (columns[0], rows[0]) if is_swapped else (rows[0], columns[0])
    batch = "".join(stack)
    return _Product(batch + first + summed[0], batch + summed[0] + last, batch + first + last, is_swapped)


def _ordered(value: ir.Value, letters: str, wanted: str, new: Rewriter) -> ir.Value:
    """The value with the axes `letters`, transposed to the axes `wanted`."""
    perm = tuple(letters.index(letter) for letter in wanted)
    if perm == tuple(range(len(perm))):
        return value
    return typed(new.op("Transpose", value, perm=list(perm)), value.type, reordered_shape(value.shape, perm))


def _is_known(dim: int | ir.SymbolicDim) -> bool:
    return isinstance(dim, int) or dim.value is not None


expand_einsum = rules_pass("expand_einsum", [EinsumToMatMul()], result="products found", requires=frozenset({"shapes"}))
