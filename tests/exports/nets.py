"""Modules that several tests of exports use."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Inside", "Net"]


class Inside(torch.nn.Module):
    """A function between two layers without faults."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


class Net(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.before, self.fault, self.after = torch.nn.ReLU(), Inside(function), torch.nn.Tanh()

    def forward(self, x: Any, *more: Any) -> Any:
        return x * 2, self.after(self.fault(self.before(x), *more))
