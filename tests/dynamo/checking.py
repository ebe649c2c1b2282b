"""Functions of the tests of `torch.compile(backend="candle")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.dynamo import candle
from compiler.dynamo.plans import Plans

__all__ = ["EXACT", "FLOAT", "candle", "check", "compiled", "count_compilations", "count_graphs", "torch"]

FLOAT = {"rtol": 1e-5, "atol": 1e-5}
"""The tolerance of results in float32: PyTorch's kernels add in another order."""
EXACT = {"rtol": 0.0, "atol": 0.0}


def compiled(function: Any, *, fullgraph: bool = True, dynamic: bool | None = None, **options: Any) -> Any:
    """The function with plans in place of all its graphs: a graph that the backend refuses is an error."""
    chosen = {"fallback": False, "threads": 1, **options}
    return torch.compile(function, backend=candle, fullgraph=fullgraph, dynamic=dynamic, options=chosen)


def check(found: Any, expected: Any, tolerance: dict[str, float] = FLOAT) -> None:
    """Check that tensors, or structures of them, have the same values, dtypes, shapes and strides."""
    torch.testing.assert_close(found, expected, check_stride=True, **tolerance)


def count_graphs() -> tuple[list[Any], Callable[..., Any]]:
    """A backend like `candle`, and the list of the graphs that it compiles."""
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any, **options: Any) -> Any:
        graphs.append(graph)
        return candle(graph, inputs, **options)

    return graphs, backend


def count_compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the number of constants of each plan as it is compiled."""
    made: list[int] = []
    compile_plan = Plans._compile

    def counting(plans: Plans, given: Any) -> Any:
        plan = compile_plan(plans, given)
        made.append(len(plan.watched))
        return plan

    monkeypatch.setattr(Plans, "_compile", counting)
    return made
