"""Checks of arguments. An error names the argument, the expected value and the value found."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "LARGEST",
    "validate_function",
    "validate_instance",
    "validate_list",
    "validate_mapping",
    "validate_names",
    "validate_seconds",
    "validate_sizes",
    "validate_state",
    "validate_texts",
    "validate_whole_number",
]

LARGEST = 10**18
"""The limit of sizes. Sums and small multiples of smaller sizes fit in 64 bits."""


def validate_instance(argument: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> None:
    """Check that a value is an instance of one of these classes.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, kinds):
        raise TypeError(f"{argument}: expected {expected}, found {type(value).__name__}")


def validate_function(argument: str, value: Any) -> None:
    """Check that a value is callable.

    Raises:
        TypeError: it is not.
    """
    if not callable(value):
        raise TypeError(f"{argument}: expected a function, found {type(value).__name__}")


def validate_whole_number(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """Check that a value is a whole number, of Python or NumPy, and return it.

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
    """Check that a value is a mapping with strings as keys.

    Raises:
        TypeError: it is not.
    """
    validate_instance(argument, value, Mapping, expected)
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{argument}: expected {expected}, found the key {key!r}")


def validate_texts(argument: str, value: Any) -> None:
    """Check that a value is a mapping of strings to strings.

    Raises:
        TypeError: it is not.
    """
    expected = "texts by key"
    validate_mapping(argument, value, expected)
    for key, text in value.items():
        if not isinstance(text, str):
            raise TypeError(f"{argument}: expected {expected}, found {text!r} for {key!r}")


def validate_names(argument: str, value: Any) -> None:
    """Check that a value is an iterable of strings. A single string is refused.

    Raises:
        TypeError: it is something else.
    """
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if not is_list or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{argument}: expected a list of names, found {value!r}")


def validate_list(argument: str, value: Any) -> None:
    """Check that a value is a list of strings, or another sequence of them.

    Raises:
        TypeError: it is something else.
    """
    validate_instance(argument, value, Sequence, "a list of names")
    validate_names(argument, value)


def validate_seconds(argument: str, value: Any) -> None:
    """Check that a value is a number of seconds, or `None`.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, or NaN.
    """
    try:
        is_time = value is None or value >= 0
    except TypeError:
        raise TypeError(f"{argument}: expected a number of seconds, found {value!r}") from None
    if not is_time:
        raise ValueError(f"{argument}: expected a number of seconds, found {value!r}")


def validate_sizes(argument: str, value: Any) -> dict[str, int]:
    """Check that a value holds sizes of dimensions by name, from 0 to below `LARGEST`, and return it as a dict.

    Raises:
        TypeError, ValueError: it is something else.
    """
    validate_mapping(argument, value, 'a dict of sizes by name, as {"batch": 1}')
    return {name: validate_whole_number(f"{argument}[{name!r}]", size, 0, LARGEST - 1) for name, size in value.items()}


def validate_state(argument: str, value: Any) -> None:
    """Check that a value is "auto", or patterns of inputs by patterns of outputs with as many stars; or `None`.

    Raises:
        TypeError, ValueError: it is something else.
    """
    expected = '"auto", or a dict of inputs by output, as {"present.*": "past.*"}'
    if value is None or value == "auto":
        return
    if isinstance(value, str):
        raise ValueError(f"{argument}: expected {expected}, found {value!r}")
    validate_mapping(argument, value, expected)
    for output, given in value.items():
        validate_instance(f"{argument}[{output!r}]", given, str, "the name of an input, or a pattern")
        if output.count("*") != given.count("*"):
            raise ValueError(f"{argument}: expected as many stars in {given!r} as in {output!r}")
