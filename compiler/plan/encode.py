"""Conversion of a plan's types to JSON.

A struct is an object. A variant is an object with one key, its name. An op is both.
"""

from __future__ import annotations

import json
import keyword
from functools import cache
from typing import Any

from compiler.plan.fields import Fields, names_of, values_of

__all__ = ["Op", "Struct", "Variant", "canonical", "plain", "text_of"]


class Struct(Fields):
    """A Rust struct."""


class Op(Struct):
    """An operation of a plan; its fields are the attributes."""


class Variant(Fields):
    """One variant of a Rust enum, with contents."""


_NESTED = (Fields, dict, list, tuple)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """A value of the plan's types as dicts, lists, numbers and strings."""
    if not isinstance(value, _NESTED):
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Op):
        return {type(value).__name__: _fields(value)}
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, Variant):
        return {type(value).__name__: _contents(value)}
    raise TypeError(f"{type(value).__name__} is no type of the plan")


def canonical(value: Any) -> str:
    """The canonical JSON text of a value, with sorted keys and without white space.

    Raises:
        ValueError: a number is infinite or NaN, which JSON lacks.
    """
    return text_of(plain(value))


def text_of(document: Any) -> str:
    """The canonical JSON text of a value that `plain` returned.

    Raises:
        ValueError: a number is infinite or NaN, which JSON lacks.
    """
    return _ENCODER.encode(document)


def _fields(value: Fields) -> dict[str, Any]:
    return {_rust_name(name): plain(item) for name, item in zip(names_of(value), values_of(value), strict=True)}


@cache
def _rust_name(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _contents(variant: Variant) -> Any:
    names = names_of(variant)
    if names == ("value",):
        return plain(values_of(variant)[0])
    return plain(values_of(variant)) if names[:1] == ("first",) else _fields(variant)
