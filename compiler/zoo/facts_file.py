"""The file of facts: the facts of the models of a folder on a device, which `candlec zoo run` compares.

The file is TOML. It has the `device`, and a table `[model.NAME.SHAPES]` for each model and kind of shapes. Each line of
a table states a fact. The facts that depend on the processor are below `level`: `level.avx2.peak_bytes = 4096`. The
program writes the whole file with sorted names, so that equal facts give equal bytes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.atomic_files import write_whole
from compiler.zoo.facts import STATUS, Facts, KnownFacts
from compiler.zoo.outcome import SHAPES
from compiler.zoo.pace import TIME, Pace
from compiler.zoo.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler.zoo.facts import Fact
    from compiler.zoo.outcome import Shapes

__all__ = ["read_facts", "write_facts"]

_HEADING = """\
# The facts of models, which must not drift: `candlec zoo run --facts FILE` compares them.
# `candlec zoo update --facts FILE` writes this file. Review its changes.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_facts(path: Path) -> KnownFacts:
    """The facts in a file.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a file of facts.
    """
    try:
        document = read_toml(path)
        if not isinstance(document.get("device"), str) or document.keys() - {"device", "model"}:
            raise ValueError("it needs the name of a `device` and tables [model.NAME.SHAPES]")
        models = _mapping("model", document.get("model", {}))
        return KnownFacts(document["device"], {name: _model(name, table) for name, table in models.items()})
    except ValueError as error:
        raise ValueError(f"{path} is not a file of facts: {error}") from error


def write_facts(path: Path, known: KnownFacts) -> None:
    """Write a file of facts.

    Raises:
        OSError: the file cannot be written.
    """
    parts = [f"{_HEADING}\ndevice = {json.dumps(known.device)}\n"]
    for name, by_shapes in sorted(known.models.items()):
        for shapes, facts in sorted(by_shapes.items()):
            lines = (f"{key} = {_value(fact)}\n" for key, fact in _lines(facts))
            parts.append("".join([f"[model.{_key(name)}.{shapes}]\n", *lines]))
    write_whole(path, "\n".join(parts).encode())


def _lines(facts: Facts) -> Iterator[tuple[str, Fact]]:
    """The keys of a table with their facts: the status first, then the plan's facts, then those of each level."""
    yield from sorted(facts.plan.items(), key=lambda item: (item[0] != STATUS, item))
    for level, found in sorted(facts.levels.items()):
        yield from ((f"level.{_key(level)}.{name}", fact) for name, fact in sorted(found.items()))


def _value(fact: Fact) -> str:
    """A fact in TOML, counts as an inline table."""
    if isinstance(fact, int):
        return str(fact)
    if isinstance(fact, str):
        return json.dumps(fact, ensure_ascii=False)
    return f"{{{', '.join(f'{_key(name)} = {count}' for name, count in sorted(fact.items()))}}}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _mapping(place: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{place} is {found!r}: write a table")
    return found


def _model(name: str, found: Any) -> dict[Shapes, Facts]:
    table = _mapping(name, found)
    if unknown := table.keys() - set(SHAPES):
        raise ValueError(f"the model {name} has {', '.join(sorted(unknown))}: use only {', '.join(SHAPES)}")
    return {shapes: _facts(f"{name}.{shapes}", _mapping(name, table[shapes])) for shapes in SHAPES if shapes in table}


def _facts(place: str, table: dict[str, Any]) -> Facts:
    levels = _mapping(f"{place}.level", table.get("level", {}))
    plan = {name: value for name, value in table.items() if name != "level"}
    if not isinstance(plan.get(STATUS), str):
        raise ValueError(f"{place} has no {STATUS}")
    by_level = {name: _level(f"{place}.level.{name}", _mapping(name, each)) for name, each in levels.items()}
    return Facts(dict(_flat(place, "", plan)), by_level)


def _level(place: str, table: dict[str, Any]) -> dict[str, Fact]:
    """The facts of a level."""
    if TIME in table and Pace.of_fact(table[TIME]) is None:
        wanted = "percent and noise, whole numbers above 0, and the classes compile and load, which may be left out"
        raise ValueError(f"{place}.{TIME} is {table[TIME]!r}: expected {wanted}")
    return dict(_flat(place, "", table))


def _flat(place: str, prefix: str, table: dict[str, Any]) -> Iterator[tuple[str, Fact]]:
    """The facts of a table by dotted name. A table of numbers is one fact. Any other table holds facts."""
    for name, value in table.items():
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield prefix + name, value
        elif not isinstance(value, dict):
            raise ValueError(f"{place}: {prefix}{name} is {value!r}: expected a number, a text or a table")
        elif all(isinstance(each, int) and not isinstance(each, bool) for each in value.values()):
            yield prefix + name, value
        else:
            yield from _flat(place, f"{prefix}{name}.", value)
