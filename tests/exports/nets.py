"""Modules that several tests of exports use."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Counting", "Inside", "Net"]


class Counting(torch.nn.Module):
    """Changes a buffer, an argument and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.seen: list[int] = []

    def forward(self, x: Any) -> Any:
        self.count += 1
        if not torch.compiler.is_compiling():
            self.seen.append(1)
        x += 1
        return x * self.count


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
