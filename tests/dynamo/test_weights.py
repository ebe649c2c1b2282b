"""Parameters and buffers are constants of plans until they change."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from compiler.dynamo import plans
from compiler.dynamo.weights import Watched
from tests.dynamo.checking import candle, check, compiled, count_compilations, count_graphs, torch

nn = torch.nn


class Block(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("shift", torch.randn(width))
        self.eval()

    def forward(self, x: Any) -> Any:
        return self.norm(self.linear(x)) + self.shift


def scale(block: Block) -> None:
    block.linear.weight.mul_(2)


def scale_a_view(block: Block) -> None:
    block.linear.weight[0].add_(1)


def assign_data(block: Block) -> None:
    block.linear.weight.data = block.linear.weight.data * 2


def replace(block: Block) -> None:
    block.linear.weight = nn.Parameter(torch.randn(6, 6))


def load(block: Block) -> None:
    block.load_state_dict(Block().state_dict())


def change_a_buffer(block: Block) -> None:
    block.shift.fill_(7)


def change_in_inference_mode(block: Block) -> None:
    with torch.inference_mode():
        block.linear.bias.add_(3)


def train(block: Block) -> None:
    optimizer = torch.optim.Adam(block.parameters(), lr=0.1)
    with torch.enable_grad():
        block(torch.randn(4, 6)).sum().backward()
    optimizer.step()


CHANGES = [scale, scale_a_view, assign_data, replace, load, change_a_buffer, change_in_inference_mode, train]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_changed_weights(change: Callable[[Block], None]) -> None:
    block, given = Block(), torch.randn(4, 6)
    run = compiled(block)
    before = block(given)
    check(run(given), before)
    change(block)
    after = block(given)
    assert not torch.allclose(before, after)
    check(run(given), after)
    check(run(given), after)


def test_weights_are_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_compilations(monkeypatch)
    block, given = Block(), torch.randn(4, 6)
    run = compiled(block)
    for _ in range(3):
        check(run(given), block(given))
    assert made == [7], "one plan with a weight, two biases and the statistics and factors of the normalization"


def test_a_weight_that_changes_often_becomes_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_compilations(monkeypatch)
    block, given = Block(), torch.randn(4, 6)
    run = compiled(block)
    for _ in range(5):
        check(run(given), block(given))
        block.linear.weight.add_(1)
    assert made == [7, 7, 6]


def test_without_freezing_all_weights_are_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_compilations(monkeypatch)
    block, given = Block(), torch.randn(4, 6)
    run = compiled(block, freeze=False)
    for _ in range(2):
        check(run(given), block(given))
        block.linear.weight.data.add_(1)  # PyTorch does not count this change
    assert made == [0]


def test_modules_of_a_class_share_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    made, (graphs, backend) = count_compilations(monkeypatch), count_graphs()
    blocks, given = [Block() for _ in range(4)], torch.randn(4, 6)
    expected = [block(given) for block in blocks]
    for block in blocks:
        block.compile(backend=backend, fullgraph=True, options={"fallback": False})
    for _ in range(2):
        check([block(given) for block in blocks], expected)
    assert len(made) == 4, "a plan for each module"
    assert len(graphs) == 1


def test_many_modules_share_a_plan_without_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PLANS", 2)
    made = count_compilations(monkeypatch)
    blocks, given = [Block() for _ in range(5)], torch.randn(4, 6)
    for block in blocks:
        expected = block(given)
        block.compile(backend=candle, fullgraph=True, options={"fallback": False})
        check(block(given), expected)
    assert made == [7, 7, 0]


def test_plans_end_with_their_modules() -> None:
    blocks, given = [Block() for _ in range(3)], torch.randn(4, 6)
    for block in blocks:
        block.compile(backend=candle, fullgraph=True)
        block(given)
    memory = weakref.ref(blocks[1].linear.weight.untyped_storage())
    del blocks[1], block
    gc.collect()
    assert memory() is None
    check(blocks[0](given), Block.forward(blocks[0], given))


def test_tied_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_compilations(monkeypatch)
    words, given = nn.Embedding(20, 8), torch.randint(20, (2, 3))

    def function(indices: Any) -> Any:
        return words(indices) @ words.weight.t()

    run = compiled(function)
    for _ in range(2):
        check(run(given), function(given))
    words.weight.mul_(2)
    check(run(given), function(given))
    assert made == [1, 1]


def test_weights_of_inference_mode_are_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_compilations(monkeypatch)
    with torch.inference_mode():
        block, given = Block(), torch.randn(4, 6)
        run = compiled(block)
        for _ in range(2):
            check(run(given), block(given))
            block.linear.weight.add_(1)
    assert made == [0]


def test_a_watched_tensor_tells_its_end() -> None:
    ended: list[bool] = []
    tensor = torch.zeros(3)
    watched = Watched(tensor, lambda: ended.append(True))
    assert watched.is_unchanged(tensor)
    assert not watched.is_unchanged(torch.zeros(3))
    tensor.detach().add_(1)
    assert (watched.watches(tensor), watched.is_unchanged(tensor)) == (True, False)
    del tensor
    gc.collect()
    assert ended == [True]
