"""Protection of a PyTorch module from its own runs, and its evaluation mode."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["evaluating", "unchanged"]

_CONTAINERS = (dict, list, set, deque)


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Put the module into evaluation mode, and restore the mode of each of its parts afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Restore the module and its parts afterwards.

    The function restores parameters, buffers and attributes. It also restores the contents of tensors and containers
    (dict, list, set, deque) that are attributes, and of tensors in these containers. Meanwhile it keeps a copy of all
    these tensors in memory.
    """
    parts = [(part, dict(part.__dict__)) for part in module.modules()]
    values = [value for _, attributes in parts for value in attributes.values()]
    containers = [(value, copy.copy(value)) for value in values if isinstance(value, _CONTAINERS)]
    items = [item for kept, _ in containers for item in (kept.values() if isinstance(kept, dict) else kept)]
    tensors = [(value, value.detach().clone()) for value in _tensors(values + items)]
    try:
        yield
    finally:
        for part, attributes in parts:
            part.__dict__.clear()
            part.__dict__.update(attributes)
        for container, kept in containers:
            if _identities(container) != _identities(kept):  # some containers refuse every change
                container.clear()
                container.update(kept) if isinstance(container, dict | set) else container.extend(kept)
        for tensor, kept in tensors:
            _restore(tensor, kept)


def _identities(container: Any) -> list[Any] | set[Any]:
    """The identities of the items, of a dict with those of the keys."""
    if isinstance(container, dict):
        return [(id(key), id(value)) for key, value in container.items()]
    return {id(item) for item in container} if isinstance(container, set) else [id(item) for item in container]


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    """The tensors among values, each once."""
    import torch

    return list({id(value): value for value in values if isinstance(value, torch.Tensor)}.values())


def _restore(tensor: torch.Tensor, kept: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        if tensor.shape == kept.shape:
            tensor.copy_(kept)
        else:
            tensor.data = kept
