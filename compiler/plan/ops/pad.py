"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class CenterCropPad(Op):
    """Crops `X` or pads it with zeros around its center, so that axis `axes[i]` has size `shape[i]`. Input 1 is
    `shape: int64 [n]`. If the number of elements to remove or to add is odd, the extra one is at the end.
    """

    axes: list[int] | None = None
    """The axes; a negative axis counts from the end; absent means all."""


class Pad(Op):
    """Adds `pads[a]` elements before axis `a` of `X` and `pads[n + a]` after it; negative numbers remove elements.
    Inputs: `X`, `pads: int64 [2n]`, `value: []` of the dtype of `X` (for mode `constant`; absent: zero), `axes:
    [n]` (absent: all axes).
    """

    mode: PadMode
    """The values of the new elements."""


PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]
"""The values of the elements that padding adds."""
