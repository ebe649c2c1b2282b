"""Translation of the names of dimensions into identifiers, which expressions can contain, and back.

ONNX allows any text as a name. A character that is not an ASCII letter, digit or `_` becomes its code point:
`batch-size` becomes `batch_u002d_size`. The translation is reversible, so different names have different identifiers.
"""

from __future__ import annotations

import re

__all__ = ["shown", "symbol_of"]

_ESCAPED = re.compile(r"_u((?!d[89a-f])[0-9a-f]{4}|[1-9a-f][0-9a-f]{4}|10[0-9a-f]{4})_")
_ODD = re.compile(r"^\d|\W|_(?=u[0-9a-f]{4,6}(?:_|\W))", re.ASCII)


def symbol_of(name: str) -> str | None:
    """The identifier of a dimension's name; `None` for a name without letters and digits, such as `?`."""
    if not any(character.isalnum() for character in name):
        return None
    return _ODD.sub(lambda odd: f"_u{ord(odd[0]):04x}_", name)


def shown(text: str) -> str:
    """Replaces identifiers in a text with the names of dimensions."""
    return _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), text)
