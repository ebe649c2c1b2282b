"""The options for a folder of models, which its INDEX.json describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.failure import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.zoo.index import Entry

__all__ = ["entries_of", "files_of", "folder_options"]


def folder_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose the folder and the models."""
    function = click.option(
        "--model", "names", multiple=True, metavar="NAME", help="Use only this model. May be repeated."
    )(function)
    return click.option(
        "--zoo",
        "folder",
        type=click.Path(path_type=Path),
        default="models",
        show_default=True,
        metavar="FOLDER",
        help="Folder of models, with an INDEX.json.",
    )(function)


def entries_of(folder: Path, names: Sequence[str]) -> list[Entry]:
    """The models of a folder, or only the named ones."""
    from compiler.zoo.index import read_index

    try:
        return read_index(folder, names)
    except ValueError as error:
        raise Failed(str(error)) from error


def files_of(folder: Path, entries: Sequence[Entry]) -> list[Path]:
    """The files that the command reads."""
    return [folder / "INDEX.json", *(path for entry in entries for path in (entry.path, *entry.cases))]
