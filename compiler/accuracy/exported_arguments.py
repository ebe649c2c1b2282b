"""Other arguments of a module: tensors of other sizes, with elements drawn from those of the given tensors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compiler.accuracy.module_runs import Call, leaves

if TYPE_CHECKING:
    import torch

    from compiler.plan import TensorInfo

__all__ = ["Open", "open_dims", "other_sizes", "resized"]

Axes = Mapping[int, Mapping[int, str]]
"""The index of a leaf of the arguments → axis → name of the dim."""
_SEED = 0
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Open:
    """The dims that a model leaves open. The names are those that the model declares."""

    axes: Axes
    sizes: Mapping[str, int]
    """The present sizes, without those that are computed from others, such as `2*batch`."""
    fixed: tuple[str, ...]
    """The dims that should vary, but that the exporter has fixed."""


def open_dims(call: Call, axes: Axes, names: Sequence[str | None], declared: Sequence[TensorInfo]) -> Open:
    """The open dims among those that should vary. `names` has the model's input for each leaf of the arguments."""
    shapes = {each.name: each.shape or () for each in declared}
    given = leaves((call.args, call.kwargs))
    found: dict[int, dict[int, str]] = {}
    sizes, fixed = dict[str, int](), list[str]()
    for leaf, dims in axes.items():
        shape = shapes.get(names[leaf] or "", ())
        for axis, asked in dims.items():
            if not shape or isinstance(shape[axis], int):
                fixed.append(asked)
                continue
            name = str(shape[axis] or asked)
            found.setdefault(leaf, {})[axis] = name
            sizes[name] = given[leaf].shape[axis]
    free = {name: size for name, size in sizes.items() if _expression(name, sizes) is None}
    return Open(found, free, tuple(dict.fromkeys(name for name in fixed if name not in sizes)))


def _expression(name: str, known: Collection[str]) -> ast.expr | None:
    """The expression that a dim's name is, if it computes the dim from other ones."""
    try:
        tree = ast.parse(name, mode="eval").body
    except SyntaxError:
        return None
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    return tree if isinstance(tree, ast.BinOp) and names and names <= {*known} - {name} else None


def _size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dim, or `None`."""
    tree = _expression(name, sizes)
    return sizes.get(name) if tree is None else _computed(tree, sizes)


def _computed(tree: ast.expr, sizes: Mapping[str, int]) -> int | None:
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if not isinstance(tree, ast.BinOp) or type(tree.op) not in _OPERATORS:
        return None
    one, other = _computed(tree.left, sizes), _computed(tree.right, sizes)
    return None if one is None or other is None else _OPERATORS[type(tree.op)](one, other)


def other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes to try in turn: larger ones that all differ, each one more, each doubled, each one less."""
    yield {name: size + 1 + index for index, (name, size) in enumerate(sizes.items())}
    if len(sizes) > 1:  # such as a total that is one more than the past
        yield {name: size + 1 for name, size in sizes.items()}
    if sizes:
        yield {name: 2 * size for name, size in sizes.items()}
    if sizes and all(size > 2 for size in sizes.values()):
        yield {name: size - 1 for name, size in sizes.items()}


def resized(call: Call, axes: Axes, sizes: Mapping[str, int]) -> Call:
    """The call with new tensors. The dims that `sizes` names have these sizes.

    Booleans are true or false with the same probability. Other elements are drawn from those of the given tensor, so
    that indices stay valid. If all elements of a tensor of floats are equal, the new ones are normally distributed.
    """
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    generator = torch.Generator().manual_seed(_SEED)
    given, structure = tree_flatten((call.args, call.kwargs))
    drawn = []
    for at, leaf in enumerate(given):
        if isinstance(leaf, torch.Tensor):
            shape = list(leaf.shape)
            for axis, name in axes.get(at, {}).items():
                size = _size(name, sizes)
                shape[axis] = shape[axis] if size is None else size
            leaf = _drawn(leaf.detach(), shape, generator)
        drawn.append(leaf)
    args, kwargs = tree_unflatten(drawn, structure)
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
