"""Which tensors share memory, and which change, is as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.dynamo import FallbackWarning
from tests.dynamo.checking import candle, check, compiled, torch

nn = torch.nn


def add_in_place(x: Any) -> Any:
    x.add_(1)
    return x * 2


def change_part(x: Any) -> Any:
    x[1].mul_(3)
    x.t()[0].zero_()
    return x.sum()


def return_changed(x: Any) -> Any:
    return x.relu_()


def view_of_input(x: Any) -> Any:
    return x.t()[1:], x + 1


def views_of_result(x: Any) -> Any:
    y = x * 2
    return y, y[None], y.t(), y[1]


def copies(x: Any) -> Any:
    return x.clone(), x.contiguous().clone(), x + 0


FUNCTIONS = [add_in_place, change_part, return_changed, view_of_input, views_of_result, copies]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("strided", [False, True])
def test_changes_and_views(function: Callable[..., Any], strided: bool) -> None:
    """After the call, a change of the input or of a result shows in the same tensors."""
    run = compiled(function)
    for _ in range(2):
        start = torch.randn(5, 4).t() if strided else torch.randn(4, 5)
        seen = []
        for each in (function, run):
            given = start.clone(memory_format=torch.preserve_format)
            found = each(given)
            results = list(found) if isinstance(found, tuple) else [found]
            seen.append([given.clone(), *(result.clone() for result in results)])
            given.add_(10)
            results[0].mul_(2)
            seen[-1] += [given, *results]
        check(seen[1], seen[0])


@pytest.mark.parametrize("offset", [0, 1])
def test_arguments_that_share_memory(offset: int) -> None:
    """PyTorch runs such a graph: its exporter does not translate the change of a part of the common memory."""

    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        return x + y

    run = torch.compile(function, backend=candle)
    base = [torch.arange(8.0), torch.arange(8.0)]
    expected = function(base[0][:4], base[0][offset : 4 + offset])
    with pytest.warns(FallbackWarning, match="as_strided"):
        check(run(base[1][:4], base[1][offset : 4 + offset]), expected)
    check(base[1], base[0])


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.norm(x) * self.count[0]


def test_a_module_changes_its_buffers() -> None:
    """Batch normalization in training mode updates its statistics."""
    module, other = Counting(), Counting()
    run = compiled(other)
    for _ in range(4):
        given = torch.randn(5, 3)
        check(run(given), module(given))
        check(dict(other.named_buffers()), dict(module.named_buffers()))


def test_a_result_does_not_change_later() -> None:
    """Results of different runs have memory of their own, also constants."""
    run = compiled(lambda x: (torch.ones(2000), x * 2))
    first = run(torch.ones(3))
    first[0].zero_()
    second = run(torch.zeros(3))
    check(second, (torch.ones(2000), torch.zeros(3)))
    check(first, (torch.zeros(2000), torch.full((3,), 2.0)))


def test_results_have_the_strides_of_pytorch() -> None:
    convolution = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    given = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)

    def function(x: Any) -> Any:
        y = convolution(x)
        return y, (x.permute(1, 0, 3, 2) + 1), y.permute(0, 2, 3, 1).reshape(-1, 4)

    check(compiled(function)(given), function(given))


def test_inputs_are_not_copied() -> None:
    """A result of the plan takes over memory, but no input does: the session's limit would count a copy."""
    x = torch.randn(64, 96)
    before = x.data_ptr(), x.clone()
    run = compiled(lambda x: (x.max(), x.view(96, 64)))
    largest, view = run(x)
    assert (x.data_ptr(), view.data_ptr()) == (before[0], before[0])
    check(x, before[1])
    check(largest, x.max())
