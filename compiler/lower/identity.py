"""Identity and Constant: values without a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value


@lowers("Identity", newest=25)
def identity(node: Node, build: PlanBuilder) -> Value:
    """`Identity`: the input itself."""
    return node.input(0)


@lowers("Constant", newest=25)
def constant(node: Node, build: PlanBuilder) -> Value:
    """`Constant`: the value of its only attribute."""
    dense = node.tensor("value", None)
    forms: list[tuple[Any, type]] = [
        (node.float("value_float", None), np.float32),
        (node.floats("value_floats", None), np.float32),
        (node.int("value_int", None), np.int64),
        (node.ints("value_ints", None), np.int64),
        (node.string("value_string", None), object),
        (node.strings("value_strings", None), object),
    ]
    arrays: list[np.ndarray] = [np.array(value, dtype) for value, dtype in forms if value is not None]
    if dense is None and not arrays:
        node.refuse("CC0202", "Constant has no value")
    return build.constant(arrays[0] if dense is None else dense)
