"""The protection of a module from its own runs."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, NoReturn

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from compiler.frontend.module_state import unchanged  # noqa: E402


class Frozen(OrderedDict[str, Any]):
    """A dict that refuses changes, as the configurations of diffusers do."""

    def clear(self) -> NoReturn:
        raise RuntimeError("frozen")

    update = clear  # type: ignore[assignment]


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(2))
        self.config = Frozen(width=3)
        self.seen, self.names, self.last = [torch.ones(2)], {"a"}, deque([1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        self.seen[0].add_(1)
        self.seen.append(x)
        self.names.add("b")
        self.last.append(2)
        self.added = x
        return x + self.steps


def test_a_run_leaves_no_trace() -> None:
    module = Counting()
    with unchanged(module):
        module(torch.zeros(2))
        assert len(module.seen) == 2 and module.steps.tolist() == [1, 1]
    assert module.steps.tolist() == [0, 0]
    assert len(module.seen) == 1 and module.seen[0].tolist() == [1, 1]
    assert (module.names, list(module.last), dict(module.config)) == ({"a"}, [1], {"width": 3})
    assert not hasattr(module, "added")
