"""Checks of arguments: the error names the argument, and says what is expected and what was found."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "LARGEST",
    "validate_function",
    "validate_instance",
    "validate_mapping",
    "validate_names",
    "validate_sizes",
    "validate_whole_number",
]

LARGEST = 10**18
"""What sizes are below, so that sums and small multiples of them are 64-bit numbers."""


def validate_instance(argument: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> None:
    """An object of one of these classes.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, kinds):
        raise TypeError(f"{argument}: expected {expected}, found {type(value).__name__}")


def validate_function(argument: str, value: Any) -> None:
    """A function, or another object that can be called.

    Raises:
        TypeError: it is not.
    """
    if not callable(value):
        raise TypeError(f"{argument}: expected a function, found {type(value).__name__}")


def validate_whole_number(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number, NumPy's too.

    Raises:
        TypeError: it is something else.
        ValueError: it is less than `least` or more than `most`.
    """
    expected = f"a whole number from {least}" + ("" if most is None else f" to {most}")
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{argument}: expected {expected}, found {value!r}")
    if number < least or (most is not None and number > most):
        raise ValueError(f"{argument}: expected {expected}, found {number}")
    return number


def validate_mapping(argument: str, value: Any, expected: str) -> None:
    """A dict, or what is like one, with texts as keys.

    Raises:
        TypeError: it is not.
    """
    validate_instance(argument, value, Mapping, expected)
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{argument}: expected {expected}, found the key {key!r}")


def validate_names(argument: str, value: Any) -> None:
    """A list of texts, or another iterable of them; one text alone is none.

    Raises:
        TypeError: it is something else.
    """
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if not is_list or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{argument}: expected a list of names, found {value!r}")


def validate_sizes(argument: str, value: Any) -> dict[str, int]:
    """Sizes of dimensions by name, from 0 to below `LARGEST`.

    Raises:
        TypeError, ValueError: it is something else.
    """
    validate_mapping(argument, value, 'a dict of sizes by name, as {"batch": 1}')
    return {name: validate_whole_number(f"{argument}[{name!r}]", size, 0, LARGEST - 1) for name, size in value.items()}
