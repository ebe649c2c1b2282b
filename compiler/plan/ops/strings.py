"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


Case: TypeAlias = Literal["keep", "lower", "upper"]
"""The case of a result."""


class RegexFullMatch(Op):
    """Whether each string of `X`, as a whole, matches a regular expression: `bool`, of the shape of `X`."""

    pattern: str
    """The expression, in [RE2's syntax](https://github.com/google/re2/wiki/Syntax)."""


class StringConcat(Op):
    """`Z = X ‖ Y`: each string of `X`, followed by the string of `Y` at the same position. The shapes broadcast as
    in NumPy.
    """


class StringNormalizer(Op):
    """The strings of `X [C]` or `[1, C]` that are not stop words, with their case changed. If none are left, the
    result is one empty string.
    """

    case: Case
    """The case of the results."""

    ignore_case: bool
    """Whether a stop word matches in any case."""

    stop_words: list[str]
    """The words to drop."""


class StringSplit(Op):
    """Splits each string of `X` at a delimiter. `Y [dims(X), n]` holds the parts, padded with empty strings to the
    largest number of parts; `Z: int64`, of the shape of `X`, holds the numbers of parts. An empty string has no
    parts.
    """

    delimiter: str
    """The delimiter. An empty one means any white space, which is then also removed at both ends."""

    most: int | None = None
    """The maximum number of splits, after which the rest stays whole; absent means no maximum."""
