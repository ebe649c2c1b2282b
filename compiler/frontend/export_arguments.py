"""The arguments of a module: their names, and the dimensions that may vary."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compiler.validate import validate_mapping

__all__ = ["bound", "leaf_names", "named_axes", "shapes_of"]

Dims = Mapping[str, Mapping[int, str]]
"""Argument → axis → name of the dim."""


def bound(module: Any, args: Any, kwargs: Any) -> Mapping[str, Any]:
    """The arguments of `forward` by name.

    Raises:
        TypeError: the module, `args` or `kwargs` have a wrong type, or `forward` does not accept them.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        kind = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
        raise TypeError(f"module: expected a torch.nn.Module, found {kind}")
    if not isinstance(args, tuple | list):
        raise TypeError(f"args: expected a tuple of the module's arguments, as (x,), found {type(args).__name__}")
    if kwargs is not None:
        validate_mapping("kwargs", kwargs, "a dict of arguments by name")
    try:
        return inspect.signature(module.forward).bind(*args, **(kwargs or {})).arguments
    except TypeError as error:
        given = "args and kwargs" if kwargs else "args"
        raise TypeError(f"{given}: {type(module).__name__}.forward does not accept them: {error}") from None


def shapes_of(module: Any, args: Any, kwargs: Any, dynamic: Dims | None, shapes: Any) -> Any:
    """Return the dims that may vary, in PyTorch's format; `None` if there are none. `dynamic` or `shapes` names them.

    Raises:
        TypeError, ValueError: one of the two is wrong, or both are given.
    """
    given = bound(module, args, kwargs)
    if shapes is None:
        return _shapes(given, dynamic) if dynamic else None
    if dynamic:
        raise ValueError("dynamic and dynamic_shapes both name dims: give one of the two")
    if hasattr(shapes, "dynamic_shapes"):  # ShapesCollection or AdditionalInputs
        return shapes.dynamic_shapes(module, tuple(args), dict(kwargs or {}))
    if not isinstance(shapes, Mapping | tuple | list):
        expected = "a dict or tuple, as torch.export.export takes it"
        raise TypeError(f"dynamic_shapes: expected {expected}, found {type(shapes).__name__}")
    if isinstance(shapes, Mapping) and (unknown := [name for name in shapes if name not in given]):
        known = ", ".join(given)
        raise ValueError(f"dynamic_shapes: the module has no argument {unknown[0]!r}; its arguments are {known}")
    return shapes


def _shapes(given: Mapping[str, Any], dynamic: Dims) -> dict[str, Any]:
    """`dynamic` in PyTorch's format: an entry for every argument, with the argument's structure."""
    if not isinstance(dynamic, Mapping):
        raise TypeError(f'dynamic: expected a dict, as {{"x": {{0: "batch"}}}}, found {type(dynamic).__name__}')
    if unknown := [name for name in dynamic if name not in given]:
        raise ValueError(f"dynamic: the module has no argument {unknown[0]!r}; its arguments are {', '.join(given)}")
    sizes: dict[str, int] = {}
    return {
        name: _symbols(name, value, dynamic[name], sizes) if name in dynamic else _static(value)
        for name, value in given.items()
    }


def _symbols(name: str, value: Any, dims: Any, sizes: dict[str, int]) -> dict[int, str]:
    """`dims` with nonnegative axes. `sizes` collects the sizes of all names."""
    import torch

    if not isinstance(value, torch.Tensor):
        raise ValueError(f"dynamic: {name!r} is a {type(value).__name__}; only dims of a tensor may vary")
    if not isinstance(dims, Mapping):
        raise TypeError(f'dynamic: {name!r}: expected a dict, as {{0: "batch"}}, found {type(dims).__name__}')
    for axis, symbol in dims.items():
        if not isinstance(axis, int) or not -value.dim() <= axis < value.dim():
            raise ValueError(f"dynamic: {name!r} has {value.dim()} dims, but no dim {axis!r}")
        if not isinstance(symbol, str) or not symbol:
            raise TypeError(f"dynamic: {name!r}: dim {axis}: expected a name, found {symbol!r}")
        size = value.shape[axis]
        if sizes.setdefault(symbol, size) != size:
            raise ValueError(f"dynamic: the dims {symbol!r} have different sizes in args, {sizes[symbol]} and {size}")
    return {axis % value.dim(): symbol for axis, symbol in dims.items()}


def _static(value: Any, leaf: Any = None) -> Any:
    """The structure of `value` with `leaf` in place of each leaf."""
    if hasattr(value, "_fields"):  # a namedtuple; PyTorch would read one with only `None` as a shape
        return type(value)(*(_static(item, {}) for item in value))
    if isinstance(value, tuple | list):
        return type(value)(_static(item, leaf) for item in value)
    if isinstance(value, dict):
        return {key: _static(item, leaf) for key, item in value.items()}
    return leaf


def leaf_names(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Return a name for each leaf of `(args, kwargs)`: its argument, and the index or key of an item, as in `x_0`."""
    from torch.utils._pytree import tree_flatten_with_path

    parameters = list(inspect.signature(module.forward).parameters.values())
    many = next((at for at, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), len(parameters))
    heads = [
        each.name if at < many else f"{parameters[many].name}_{at - many}" for at, each in _indexed(parameters, args)
    ]
    leaves, _ = tree_flatten_with_path((tuple(args), dict(kwargs)))
    names = []
    for (side, first, *rest), _ in leaves:
        head = heads[first.idx] if side.idx == 0 else str(first.key)
        names.append("_".join([head, *map(_key, rest)]))
    return names


def _indexed(parameters: Sequence[inspect.Parameter], args: Sequence[Any]) -> Iterator[tuple[int, inspect.Parameter]]:
    """Each positional argument's index, with its parameter or the last one."""
    for at in range(len(args)):
        yield at, parameters[min(at, len(parameters) - 1)]


def _key(entry: Any) -> str:
    """The index, key or attribute of an item."""
    return str(next(value for name in ("idx", "key", "name") if (value := getattr(entry, name, None)) is not None))


def named_axes(given: Mapping[str, Any], shapes: Any) -> dict[int, dict[int, str]]:
    """The id of each tensor with dims that may vary → axis → name of the dim. `shapes` has PyTorch's format.

    A dim without a name, such as `Dim.AUTO`, gets the name of its place.
    """
    if not shapes:
        return {}
    by_name = shapes if isinstance(shapes, Mapping) else dict(zip(given, shapes, strict=False))
    return dict(_axes((value, by_name.get(name), name) for name, value in given.items()))


def _axes(items: Any) -> Iterator[tuple[int, dict[int, str]]]:
    import torch

    for value, shape, path in items:
        if isinstance(value, torch.Tensor):
            dims = shape if isinstance(shape, Mapping) else dict(enumerate(shape or ()))
            names = {axis % value.dim(): _name(dim, f"{path}_dim_{axis}") for axis, dim in dims.items()}
            if found := {axis: name for axis, name in names.items() if name}:
                yield id(value), found
        elif isinstance(value, Mapping) and isinstance(shape, Mapping):
            yield from _axes((item, shape.get(key), f"{path}_{key}") for key, item in value.items())
        elif isinstance(value, tuple | list) and isinstance(shape, tuple | list):
            pairs = zip(value, shape, strict=False)
            yield from _axes((item, one, f"{path}_{at}") for at, (item, one) in enumerate(pairs))


def _name(dim: Any, place: str) -> str:
    """The name of a dim that may vary; empty for a fixed one."""
    if isinstance(dim, str):
        return dim
    hint = getattr(getattr(dim, "type", None), "name", "")
    if hint:  # Dim.AUTO, Dim.DYNAMIC or Dim.STATIC
        return "" if hint == "STATIC" else place
    return getattr(dim, "__name__", "") if not isinstance(dim, int | None) else ""
