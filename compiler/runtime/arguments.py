"""The arguments of `Session.run`, for other methods that take the same ones."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar

if TYPE_CHECKING:
    from compiler import _runtime
    from compiler.runtime.libraries import Library
    from compiler.runtime.state import State

__all__ = ["RunOptions", "with_arguments_of"]

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def with_arguments_of(
    run: Callable[Concatenate[S, P], T],
) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]]:
    """Gives a coroutine the arguments of `run`, for type checkers and for `help`."""
    return partial(update_wrapper, wrapped=run, assigned=(), updated=())


class RunOptions(TypedDict, total=False):
    """The arguments of `Session.run` after the inputs."""

    outputs: Iterable[str] | None
    device_outputs: bool
    copy: bool
    timeout: float | None
    as_: Library
    out: Mapping[str, Any] | None
    cancel: _runtime.Cancel | None
    state: State | None
