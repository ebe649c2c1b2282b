"""Parameter types for numbers: whole numbers and finite numbers in a range, and sizes with a unit."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

__all__ = ["Finite", "Size", "Whole"]

if TYPE_CHECKING:

    class Number(click.ParamType[int]):
        """The base of parameter types for whole numbers."""

else:  # before click 8.4 the class takes no parameter
    Number = click.ParamType


def _in_words(numbers: Whole | Finite) -> str:
    """`from 1 to 1024`, `from 0`, `above 0`; nothing for every number."""
    if numbers.min is None:
        return ""
    words = f"{'above' if numbers.min_open else 'from'} {numbers.min}"
    return words if numbers.max is None else f"{words} to {numbers.max}"


class Whole(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number {_in_words(self)}", param, ctx)

    def _describe_range(self) -> str:
        """The range for the help."""
        return _in_words(self)


class Finite(click.FloatRange):
    """A finite number in a range. NaN would pass every comparison with the bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        try:
            return super().convert(number, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number {_in_words(self)}", param, ctx)

    def _describe_range(self) -> str:
        """The range for the help."""
        return _in_words(self)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class Size(Number):
    """A number of bytes, with or without a unit: `2GB`, `512MiB`, `1.5 GB`, `1000000`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        from fractions import Fraction

        given = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", str(value))
        unit = _UNITS.get(given[2].lower().removesuffix("b")) if given else None
        size = None if given is None or unit is None else int(Fraction(given[1]) * unit)
        if size is None or size >= 10**18:
            self.fail(f"{value!r} is not a size below 10^18 bytes: write it as 2GB, 512MiB or 1000000", param, ctx)
        return size
