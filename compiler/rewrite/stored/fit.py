"""A weight of a model and the tensor of a file that replaces it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from compiler.errors import CompileError, Diagnostic
from compiler.rewrite.low_bit import PackedWeights
from compiler.rewrite.stored.file import WeightFile
from compiler.rewrite.stored.parameters import Parameter

__all__ = ["Blocks", "Fit"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Fit:
    """A weight and the tensor that replaces it."""

    parameter: Parameter
    name: str
    """The name of the weight by which the tensor was found."""
    tensor: str
    transposed: bool = False
    """Whether the weight is the transposed tensor."""
    order: Array | None = None
    """The rows of the tensor in the order of the model; `None` for the order of the file."""
    shift: float = 0.0
    """The number by which the elements of the tensor exceed those of the weight."""

    def rows(self, file: WeightFile) -> Array:
        """The elements, in the dtype of the weight: for a linear layer, the rows `[N, K]`.

        Raises:
            CompileError: the dtype cannot represent an element.
        """
        array, dtype = file.array(self.tensor), self.parameter.dtype
        if self.order is not None:
            array = array[self.order]
        if self.shift:
            array = array - array.dtype.type(self.shift)
        with np.errstate(over="ignore"):
            found: Array = array.astype(dtype, copy=False)
        if np.isinf(found).any() and not np.isinf(array).any():
            text = f"the tensor of {file}, {self.tensor!r}: {dtype} cannot represent a number"
            raise CompileError([Diagnostic("CC0409", text)])
        return found

    def packed(self, file: WeightFile) -> PackedWeights | None:
        """The codes of the rows; `None` if the file has none."""
        found = file.packed(self.tensor)
        if found is None or self.order is None:
            return found
        zeros = None if found.zeros is None else found.zeros[self.order]
        return replace(found, codes=found.codes[self.order], scales=found.scales[self.order], zeros=zeros)


class Blocks:
    """The matrices of codes of a file that became matrices of floats, by their numbers."""

    KEY: ClassVar[str] = "candle_plan.blocks"
    """The key in the `meta` of a model."""

    def __init__(self, file: WeightFile) -> None:
        self._file = file
        self._fits: dict[tuple[tuple[int, ...], bytes], list[tuple[Fit, weakref.ref[Array]]]] = {}
        self._packed: dict[str, PackedWeights | None] = {}

    def add(self, fit: Fit, array: Array) -> None:
        """Records a tensor, if it may be a matrix of codes, and the weight `array` of the model, which has its numbers.

        The reference to the array is weak, so that a matrix that a pass replaces takes no memory. Only the numbers of
        such a matrix have to be computed again.
        """
        if array.ndim == 2 and self._file.tensors[fit.tensor].is_quantized:
            rows = array.T if fit.transposed else array
            self._fits.setdefault(_key(rows), []).append((fit, weakref.ref(array)))

    def of(self, rows: Array) -> tuple[PackedWeights, str] | None:
        """The codes that stand for exactly these numbers `[N, K]`, and their type; `None` without such codes.

        Readers of one tensor share the arrays, so that the plan has them once.
        """
        for fit, held in self._fits.get(_key(rows), []):
            array = held()
            is_same = array is not None and _is_same(rows, array.T if fit.transposed else array)
            if not is_same and not np.array_equal(fit.rows(self._file), rows):
                continue
            if fit.tensor not in self._packed:
                self._packed[fit.tensor] = fit.packed(self._file)
            if (packed := self._packed[fit.tensor]) is not None:
                return packed, self._file.tensors[fit.tensor].kind
        return None


def _key(rows: Array) -> tuple[tuple[int, ...], bytes]:
    """The shape and the first row, which few matrices share."""
    return rows.shape, rows[:1].tobytes()


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays are the same elements of the same memory."""
    return one.dtype == other.dtype and one.__array_interface__ == other.__array_interface__
