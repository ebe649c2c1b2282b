"""Control flow."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tests.layers.layer import f32, ints, layer

NOT_TRACED = {"torchscript": "it cannot trace torch.cond and while_loop"}
NOT_SCRIPTED = {"dynamo": "torch.export does not support data-dependent branches and loops"}
X = f32(3, 4)


class Conditional(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.sin(), (x,))


class NestedConditional(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(
            x.sum() > 0, lambda x: torch.cond(x.max() > 1, torch.exp, torch.sin, (x,)), lambda x: -x, (x,)
        )


def branch(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x * 2
    return x.sin()


def counted(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    for step in range(int(count)):
        x = x * 0.5 + step
    return x


def halved(x: torch.Tensor) -> torch.Tensor:
    while bool(x.abs().max() > 0.1):
        x = x / 2
    return x


def collected(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for row in x:
        rows.append(row.cumsum(0))
    return torch.stack(rows)


class Scripted(nn.Module):
    """A function whose branches and loops are kept, as TorchScript."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = torch.jit.script(function)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


class WhileLoop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda x: x.abs().max() > 0.1, lambda x: (x / 2,), (x,))[0]


class Unrolled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x[0]
        for row in x[1:]:
            state = torch.tanh(state + row)
        return state


class Positions(nn.Module):
    """The sum of the embeddings of tokens and of their positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(10, 6), nn.Embedding(8, 6)
        self.register_buffer("positions", torch.arange(8)[None])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.tokens(tokens) + self.places(self.positions[:, : tokens.shape[1]])


LAYERS = [
    layer("cond, true", Conditional, X.abs(), again=(-X.abs(),), unexportable=NOT_TRACED),
    layer("cond, false", Conditional, -X.abs(), again=(X.abs(),), unexportable=NOT_TRACED),
    layer("cond in cond", NestedConditional, X.abs(), again=(-X.abs(),), unexportable=NOT_TRACED),
    layer("while_loop", WhileLoop, X, unexportable=NOT_TRACED),
    layer(
        "scripted if",
        lambda: Scripted(branch),
        X.abs(),
        again=(-X.abs(),),
        ours="torchscript",
        unexportable=NOT_SCRIPTED,
    ),
    layer(
        "scripted for",
        lambda: Scripted(counted),
        X,
        torch.tensor(3),
        again=(X, torch.tensor(5)),
        ours="torchscript",
        unexportable=NOT_SCRIPTED,
    ),
    layer("scripted while", lambda: Scripted(halved), X, ours="torchscript", unexportable=NOT_SCRIPTED),
    layer("scripted list", lambda: Scripted(collected), X),
    layer("loop, unrolled", Unrolled, X),
    layer(
        "Sequential, ModuleList",
        lambda: nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3))),
        X,
    ),
    layer("buffer of positions", Positions, ints(2, 4)),
]
