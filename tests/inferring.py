"""Steps of plans as texts, for tests of what the runtime infers of them."""

from __future__ import annotations

import re

import numpy as np

from compiler import _runtime
from compiler.plan import ops
from compiler.plan.encode import Op, canonical
from compiler.plan.types import tensor

ONES = [1, 1]
STFT = ops.Stft(one_sided=False)
ROI_ALIGN = ops.RoiAlign(greatest=False, half_pixel=True, height=2, samples=0, scale=1.0, width=2)
ROTARY = ops.RotaryEmbedding(interleaved=False)
SCATTER = ops.ScatterElements(axis=0, reduction="none")
SCATTER_ND = ops.ScatterNd(reduction="none")
CACHE = ops.TensorScatter(axis=1, circular=False)

DTYPES = {"b": "bool", "f": "float32", "i": "int64", "n": "int32", "u": "uint8", "s": "string"}


def interpolate(coordinates: ops.Coordinates = "HalfPixel", axes: list[int] | None = None) -> ops.Interpolate:
    return ops.Interpolate(
        antialias=False,
        coordinates=coordinates,
        exclude_outside=False,
        extrapolation=0.0,
        mode="Linear",
        size_policy="Stretch",
        axes=axes,
    )


def type_of(text: str, *, known: bool = True) -> ops.AnyType | None:
    """The type of a text such as `f[2,n,?]`, without sizes if they must be unknown; parentheses mean a sequence."""
    if text == "-":
        return None
    if text.startswith("("):
        item = type_of(text[1:-1], known=known)
        assert item is not None
        return ops.Type.Sequence(item)
    sizes = [int(size) if size.isdigit() else size.strip("?") or None for size in re.findall(r"[\w?]+", text[1:])]
    return tensor(DTYPES[text[0]], sizes if known else [None] * len(sizes))


def array_of(text: str) -> np.ndarray | None:
    """The constant of `i[2]={3,4}`."""
    kind, _, elements = text.partition("=")
    if not elements:
        return None
    numbers = np.array(elements.strip("{}").split(","), "float64").astype(DTYPES[kind[0]])
    return numbers.reshape([int(size) for size in re.findall(r"\d+", kind)])


def asked(op: Op, inputs: str, *, known: bool = True) -> tuple[str, str, list[bytes | None]]:
    """The arguments of `_runtime.infer` for a step. Without `known`, they have only dtypes and ranks."""
    texts = inputs.split()
    arrays = [array_of(text) if known else None for text in texts]
    types = [type_of(text.partition("=")[0], known=known) for text in texts]
    return canonical(op), canonical(types), [None if array is None else array.tobytes() for array in arrays]


def infer(op: Op, inputs: str, *, known: bool = True) -> str:
    return _runtime.infer(*asked(op, inputs, known=known), 1)
