"""The plan's types as JSON: a struct is an object, a variant an object of one key, its name; an op is both."""

from __future__ import annotations

import json
import keyword
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Op", "Struct", "Variant", "canonical", "plain"]


@dataclass(frozen=True)
class Struct:
    """A Rust struct."""


@dataclass(frozen=True)
class Op(Struct):
    """An operation of a plan; its fields are the attributes."""


@dataclass(frozen=True)
class Variant:
    """One variant of a Rust enum, with contents."""


def plain(value: Any) -> Any:
    """A value of the plan's types as dicts, lists, numbers and strings."""
    if isinstance(value, Op):
        return {type(value).__name__: _fields(value)}
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, Variant):
        return {type(value).__name__: _contents(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no white space. Numbers that JSON lacks (infinity, NaN) are refused.

    Raises:
        ValueError: a number is infinite or not a number.
    """
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _fields(value: Any) -> dict[str, Any]:
    return {_rust_name(field.name): plain(getattr(value, field.name)) for field in fields(value)}


def _rust_name(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _contents(variant: Variant) -> Any:
    names = [field.name for field in fields(variant)]
    if names == ["value"]:
        return plain(variant.value)  # type: ignore[attr-defined]
    if names[:1] == ["first"]:
        return [plain(getattr(variant, name)) for name in names]
    return _fields(variant)
