"""Weights like those of a trained network, without training: seeded, and none a constant that could be folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Network = TypeVar("Network", bound=nn.Module)

NOISE = 0.1


def seeded(make: Callable[[], Network], inputs: Mapping[str, Any], by_name: bool = False) -> Network:
    """The network that `make` builds, with random weights that are the same every time, ready to be exported.

    Biases and scales, which begin as zeros and ones, get noise; the running statistics of batch normalizations are
    those of a run on `inputs`, so that the values stay of one magnitude through all layers. With `by_name`, the network
    gets its inputs by their names.
    """
    torch.manual_seed(0)
    network = make().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() <= 1 or parameter.numel() == max(parameter.shape):
                parameter += NOISE * torch.randn_like(parameter)
        _set_statistics(network, (lambda: network(**inputs)) if by_name else lambda: network(*inputs.values()))
    return network


def noise(*shape: int) -> torch.Tensor:
    """Normal noise, the same every time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def tokens(vocabulary: int, *shape: int) -> torch.Tensor:
    """Tokens of a vocabulary, the same every time."""
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(1))


def _set_statistics(network: nn.Module, run: Callable[[], object]) -> None:
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = 1.0  # the last run's statistics alone
        norm.train()
    run()
    for norm in norms:
        norm.eval()
