"""A file of measures: the measures of models, for a user who cannot change INDEX.json.

The file is TOML. It has a table for each model, with the key `task` of INDEX.json (`compiler.zoo.agreement.task`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.zoo.agreement.task import tasks_of
from compiler.zoo.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from compiler.zoo.agreement.task import Task
    from compiler.zoo.index import Entry

__all__ = ["read_measures", "with_measures"]


def read_measures(path: Path) -> dict[str, tuple[Task, ...]]:
    """The measures in a file by model.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a file of measures.
    """
    try:
        tables = read_toml(path)
        return {name: _tasks(name, table) for name, table in tables.items()}
    except ValueError as error:
        raise ValueError(f"{path} is not a file of measures: {error}") from error


def _tasks(name: str, table: object) -> tuple[Task, ...]:
    if not isinstance(table, dict) or table.keys() != {"task"}:
        raise ValueError(f"{name} needs a table with only the key task")
    try:
        return tasks_of(table["task"])
    except ValueError as error:
        raise ValueError(f"the model {name} {error}") from None


def with_measures(entries: Sequence[Entry], path: Path | None, only: Collection[str] = ()) -> list[Entry]:
    """The models with the measures of a file added to their own. `only` are the expressions that selected the models.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a file of measures, or names a model that is not among all of the folder's.
    """
    if path is None:
        return list(entries)
    known = read_measures(path)
    names = {entry.name for entry in entries}
    if not only and (unknown := known.keys() - names):
        raise ValueError(f"{path} has measures of {', '.join(sorted(unknown))}, which the folder does not have")
    return [replace(entry, tasks=entry.tasks + known.get(entry.name, ())) for entry in entries]
