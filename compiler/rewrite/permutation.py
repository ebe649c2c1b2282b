"""Permutations of axes, as in Transpose: axis `i` of the result is axis `perm[i]` of the input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.ir.views.transpose import TransposeView

__all__ = ["inverse", "permutation_of", "permuted_constant", "reordered_shape", "typed"]

Permutation = tuple[int, ...]


def permutation_of(node: ir.Node) -> Permutation | None:
    """The permutation of a Transpose; `None` if the rank is unknown, or `perm` is no permutation of the axes."""
    view = TransposeView[ir.Value].of(node)
    return None if view is None else view.order(rank(view.x))


def inverse(perm: Sequence[int]) -> Permutation:
    """The inverse permutation."""
    return tuple(perm.index(axis) for axis in range(len(perm)))


def permuted_constant(array: np.ndarray, perm: Permutation) -> np.ndarray:
    """Permutes a constant that broadcasts to the rank of `perm`; keeps the constant's rank if possible."""
    if array.size == 1:
        return array
    full = array.reshape([1] * (len(perm) - array.ndim) + list(array.shape))
    return np.ascontiguousarray(full.transpose(perm))


def reordered_shape(shape: ir.Shape | None, perm: Permutation) -> ir.Shape | None:
    """The shape with permuted axes."""
    return None if shape is None or len(shape) != len(perm) else ir.Shape([shape.dims[axis] for axis in perm])


def typed(value: ir.Value, kind: ir.TypeProtocol | None, shape: ir.Shape | None) -> ir.Value:
    """Sets the type and shape of a value, and returns it."""
    value.type, value.shape = kind, shape
    return value
