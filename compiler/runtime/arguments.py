"""The arguments of a method, for another method that takes the same ones."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["with_arguments_of"]

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def with_arguments_of(
    run: Callable[Concatenate[S, P], T],
) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]]:
    """Gives a coroutine the arguments of `run`, for type checkers and for `help`."""
    return partial(update_wrapper, wrapped=run, assigned=(), updated=())
