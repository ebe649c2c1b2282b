"""Other arguments of a module: tensors of other sizes, with elements drawn from those of the given tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compiler.accuracy.module_runs import Call, leaves
from compiler.frontend.export import bound

if TYPE_CHECKING:
    import torch

    from compiler.plan import TensorInfo

__all__ = ["free_dims", "other_sizes", "resized"]

Dims = Mapping[str, Mapping[int, str]]
"""Argument → axis → name of the dim."""
_SEED = 0


def free_dims(call: Call, dynamic: Dims, names: Sequence[str | None], declared: Sequence[TensorInfo]) -> dict[str, int]:
    """The named dims that the model leaves open, with their present sizes. The exporter may have fixed others."""
    given = bound(call.module, call.args, call.kwargs)
    shapes = {each.name: each.shape or () for each in declared}
    by_tensor = zip(leaves((call.args, call.kwargs)), names, strict=True)
    inputs = {id(value): name for value, name in by_tensor if name is not None}
    found = {}
    for name, dims in dynamic.items():
        shape = shapes.get(inputs.get(id(given[name]), ""), ())
        open_dims = {axis: symbol for axis, symbol in dims.items() if shape and not isinstance(shape[axis], int)}
        found.update({symbol: given[name].shape[axis] for axis, symbol in open_dims.items()})
    return found


def other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes to try in turn: larger ones that all differ, each one more, each doubled, each one less."""
    yield {name: size + 1 + index for index, (name, size) in enumerate(sizes.items())}
    if len(sizes) > 1:  # such as a total that is one more than the past
        yield {name: size + 1 for name, size in sizes.items()}
    yield {name: 2 * size for name, size in sizes.items()}
    if all(size > 2 for size in sizes.values()):
        yield {name: size - 1 for name, size in sizes.items()}


def resized(call: Call, dynamic: Dims, sizes: Mapping[str, int]) -> Call:
    """The call with new tensors. The dims that `sizes` names have these sizes.

    Booleans are true or false with the same probability. Other elements are drawn from those of the given tensor, so
    that indices stay valid. If all elements of a tensor of floats are equal, the new ones are normally distributed.
    """
    import torch
    from torch.utils._pytree import tree_map

    given, generator = bound(call.module, call.args, call.kwargs), torch.Generator().manual_seed(_SEED)
    shapes: dict[int, list[int]] = {}
    for name, dims in dynamic.items():
        shape = shapes.setdefault(id(given[name]), list(given[name].shape))
        for axis, symbol in dims.items():
            shape[axis] = sizes.get(symbol, shape[axis])

    def drawn(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return _drawn(leaf.detach(), shapes.get(id(leaf), list(leaf.shape)), generator)

    args, kwargs = tree_map(drawn, (call.args, call.kwargs))
    return replace(call, args=args, kwargs=kwargs)


def _drawn(tensor: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """A tensor of the same dtype on the same device."""
    import torch

    flat = tensor.cpu().flatten()
    if tensor.dtype == torch.bool:
        new = torch.randint(0, 2, tuple(shape), generator=generator).bool()
    elif tensor.is_floating_point() and (not flat.numel() or bool((flat == flat[0]).all())):
        new = torch.randn(tuple(shape), generator=generator).to(tensor.dtype)
    elif not flat.numel():
        new = torch.zeros(tuple(shape), dtype=tensor.dtype)
    else:
        new = flat[torch.randint(0, flat.numel(), tuple(shape), generator=generator)]
    return new.to(tensor.device)
