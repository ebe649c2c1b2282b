"""Other elements for the inputs of a model, because some errors depend on elements, such as an index out of range."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from tests.accepted.small import Array, Small


def other_values(model: Small) -> Iterator[Small]:
    """The model with other elements: one number, distinct numbers, a list of sizes with an unknown one, or a shape."""
    arrays = dict(model.arrays())
    shape = next(iter(arrays.values())).shape if arrays else ()
    integers = {name: array for name, array in arrays.items() if array.dtype.kind in "iu"}
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind in "iufb"}
    for number in (0, 1, 2):
        for some in (integers, numbers):
            yield model.changed(f"all {number}", {name: np.full_like(array, number) for name, array in some.items()})
    made: list[Callable[[Array], Array]] = [_counted, _with_unknown, lambda array: _sizes(array, shape)]
    made += [functools.partial(_parts, size) for size in shape]
    for make in made:
        yield model.changed("lists", {name: make(array) for name, array in integers.items()})


def _counted(array: Array) -> Array:
    return np.arange(array.size).reshape(array.shape).astype(array.dtype)


def _with_unknown(array: Array) -> Array:
    """-1, which stands for a size that follows from the others, then 1 for all others."""
    filled = np.ones_like(array)
    filled.ravel()[:1] = -1 if array.dtype.kind == "i" else 1
    return filled


def _parts(size: int, array: Array) -> Array:
    """Sizes that add up to one."""
    filled = np.ones_like(array)
    filled.ravel()[:1] = max(size - array.size + 1, 0)
    return filled


def _sizes(array: Array, shape: tuple[int, ...]) -> Array:
    return np.array(shape, array.dtype) if array.shape == (len(shape),) else array
