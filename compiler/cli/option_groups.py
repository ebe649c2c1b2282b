"""Groups of options: a command gets the values of all options of a group as one object."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., Any]
    Decorator = Callable[[Function], Function]

__all__ = ["grouped"]


def grouped(name: str, make: Function, *options: Decorator) -> Decorator:
    """A decorator that adds options, in this order. The command gets the object `make(…)` as the parameter `name`.

    `make` is a dataclass or a function. Its parameters are those of the options, and it keeps the default of a
    parameter without an option. If `make` lacks the parameter of an option, the command gets its value by itself.
    """
    own = inspect.signature(make).parameters

    def decorate(function: Function) -> Function:
        def with_group(*given: Any, **values: Any) -> Any:
            mine = {each: values.pop(each) for each in own if each in values}
            return function(*given, **values, **{name: make(**mine)})

        made: Function = functools.wraps(function)(with_group)
        for option in reversed(options):
            made = option(made)
        return made

    return decorate
