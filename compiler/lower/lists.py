"""Conversion of lists of numbers that views read into values of a plan."""

from __future__ import annotations

import numpy as np

from compiler.ir.views.source import Listed
from compiler.plan import PlanBuilder, Value


def ints(build: PlanBuilder, listed: Listed[Value, int] | None) -> Value | None:
    """The integers as a value `[n]` of int64: the input that holds them, or a constant from the attribute."""
    if listed is None or listed.value is not None:
        return None if listed is None else listed.value
    return build.constant(np.array(listed.known, np.int64))


def floats(build: PlanBuilder, listed: Listed[Value, float] | None) -> Value | None:
    """The numbers as a value `[n]`: the input that holds them, or a float32 constant from the attribute."""
    if listed is None or listed.value is not None:
        return None if listed is None else listed.value
    return build.constant(np.array(listed.known, np.float32))
