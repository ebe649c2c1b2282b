"""Seeded random inputs of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from compiler.errors import did_you_mean
from compiler.validate import validate_sizes, validate_whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.plan import TensorInfo

__all__ = ["random_inputs"]

BATCH, OTHER = 1, 16
_LARGEST = 2**40
"""The limit of elements. No machine has memory for more."""


def random_inputs(declared: Sequence[TensorInfo], sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
    """A random array for each input: normally distributed floats, integers and booleans 0 or 1, short words as strings.

    `sizes` gives the sizes of symbols. Any other unknown size is 1 for the first dimension, and 16 for the others.
    Equal symbols have equal sizes.

    Raises:
        TypeError, ValueError: no input has a symbol of `sizes`, a size or the seed is not a whole number from 0, or an
            input is a sequence or would be too large.
        MemoryError: there is too little memory for an input.
    """
    validate_sizes("dims", sizes)
    seed = validate_whole_number("seed", seed, 0)
    symbols = {dim: None for each in declared for dim in each.shape or () if isinstance(dim, str)}
    if unknown := [name for name in sizes if name not in symbols]:
        known = f"the inputs have the dimensions {', '.join(symbols)}" if symbols else "all sizes are fixed"
        raise ValueError(f"no input has a dimension {unknown[0]!r}: {did_you_mean(unknown[0], symbols) or known}")
    if sequences := [each.name for each in declared if each.kind == "sequence"]:
        raise ValueError(f"the input {sequences[0]!r} is a sequence, which has no random value: give the inputs")
    generator = np.random.default_rng(seed)
    chosen = dict(sizes)
    shapes = {each.name: _shape(each.shape or (), chosen) for each in declared}
    made = {}
    for each in declared:
        try:
            made[each.name] = _random(each.name, each.dtype, shapes[each.name], generator)
        except MemoryError:
            shape = list(shapes[each.name])
            raise MemoryError(f"no memory for the random input {each.name!r} of shape {shape}") from None
    return made


def _shape(dims: tuple[int | str | None, ...], chosen: dict[str, int]) -> tuple[int, ...]:
    def size(axis: int, dim: int | str | None) -> int:
        free = BATCH if axis == 0 else OTHER
        if isinstance(dim, str):
            return chosen.setdefault(dim, free)
        return free if dim is None else dim

    return tuple(size(axis, dim) for axis, dim in enumerate(dims))


def _random(name: str, dtype: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray[Any, Any]:
    if math.prod(shape) > _LARGEST:
        raise ValueError(f"the random input {name!r} of shape {list(shape)} would be too large: give smaller sizes")
    if dtype == "string":
        words = generator.choice(np.array(["lamp", "river", "stone"], dtype=object), size=math.prod(shape))
        return words.reshape(shape)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind in "biu" or "int" in dtype:
        return generator.integers(0, 2, size=shape).astype(kind)
    return generator.standard_normal(shape, dtype=np.float32).astype(kind)
