"""The standard streams: characters that cannot be encoded, and errors of writing."""

from __future__ import annotations

import codecs
import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StreamError", "echo", "encodable", "naming", "replace_unknown"]

_HANDLER = "candlec"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_PLAIN = {"✓": "+", "✗": "x", "≈": "~", "→": ">", "×": "x", "÷": "/", "·": ".", "▦": "#", "…": "...", "–": "-"}
"""Characters that a stream may lack, each with an ASCII text for it."""


class StreamError(OSError):
    """An error of writing to a standard stream. Its `filename` is the name of the stream."""


@contextmanager
def naming(stream: str) -> Iterator[None]:
    """Let an error of writing name the stream. A closed pipe stays as it is, because it ends the program quietly."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StreamError(error.errno, error.strerror or str(error), stream) from error


def echo(text: str, *, end: bool = True) -> None:
    """Print a text on the standard output, and with `end` a line break.

    Raises:
        StreamError: the output takes no more text.
    """
    with naming("standard output"):
        click.echo(text, nl=end)


def replace_unknown() -> None:
    """Let the standard streams replace characters that they cannot encode, such as the bytes of a file's odd name."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def encodable(text: str) -> str:
    """The text with a replacement character for each byte of a file's name that is no text."""
    return "".join(_UNKNOWN if _is_byte(each) else each for each in text)


def _is_byte(character: str) -> bool:
    """Whether a character stands for a byte that is no text, as in names of files."""
    return "\ud800" <= character <= "\udfff"


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """The text that replaces the characters of the error, and the place where encoding goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    text = "".join(_UNKNOWN if _is_byte(each) else _PLAIN.get(each, "?") for each in wrong)
    try:
        return text.encode(error.encoding), error.end  # the encoder of UTF-8 takes other than ASCII only as bytes
    except UnicodeEncodeError:
        return text.replace(_UNKNOWN, "?"), error.end
