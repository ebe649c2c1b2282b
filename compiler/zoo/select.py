"""Expressions that select models of a folder: `NAME`, `tag:TAG`, `op:Conv`, `failed`, and `@FILE` with such lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from compiler.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compiler.zoo.index import Entry

__all__ = ["FAILED", "selected"]

FAILED = "failed"
"""The expression for the models whose last result in the file of results was not acceptable."""


def selected(
    entries: Sequence[Entry], expressions: Sequence[str], failed: Collection[str] | None = None
) -> list[Entry]:
    """The models that one of the expressions selects, in the order of the folder; all without an expression.

    `failed` are the names of the models that failed before; `None` says that they are unknown.

    Raises:
        ValueError: an expression selects no model.
    """
    every = [line for each in expressions for line in _lines(each, entries)]
    chosen = {name for each in every for name in _names(entries, each, failed)}
    return [entry for entry in entries if not expressions or entry.name in chosen]


def _lines(expression: str, entries: Sequence[Entry]) -> list[str]:
    """The expressions in the file of `@FILE`, without empty lines and comments; any other expression itself."""
    if not expression.startswith("@") or expression in (entry.name for entry in entries):
        return [expression]
    path = Path(expression[1:])
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the names of models in {path}: {error}") from error
    if not (found := [line for line in lines if line and not line.startswith("#")]):
        raise ValueError(f"{path} names no model")
    return found


def _names(entries: Sequence[Entry], expression: str, failed: Collection[str] | None) -> list[str]:
    """The names of the models that an expression selects. A model's own name comes first."""
    kind, colon, value = expression.partition(":")
    names = [entry.name for entry in entries]
    if expression in names:
        return [expression]
    if expression == FAILED:
        return _failed(names, failed)
    if colon and kind == "tag":
        return _tagged(entries, value)
    if colon and kind == "op":
        return _with_operator(entries, value)
    forms = f"write the name of a model, tag:TAG, op:OPERATOR, {FAILED} or @FILE"
    raise ValueError(f"the folder has no model {expression}: {did_you_mean(expression, names) or forms}")


def _failed(names: Sequence[str], failed: Collection[str] | None) -> list[str]:
    if failed is None:
        raise ValueError("only a file of results says which models failed: add --results FILE")
    if not (found := [name for name in names if name in failed]):
        raise ValueError("no model of the folder failed in the file of results")
    return found


def _tagged(entries: Sequence[Entry], tag: str) -> list[str]:
    if found := [entry.name for entry in entries if tag in entry.tags]:
        return found
    tags = sorted({each for entry in entries for each in entry.tags})
    known = f"the tags are {', '.join(tags)}" if tags else "INDEX.json has no `tags`"
    raise ValueError(f"no model has the tag {tag}: {did_you_mean(tag, tags) or known}")


def _with_operator(entries: Sequence[Entry], operator: str) -> list[str]:
    """The models with an operator, whose name may have a domain: `com.microsoft.FusedConv`."""
    operators = {entry.name: _operators(entry) for entry in entries}
    if found := [name for name, each in operators.items() if operator in each]:
        return found
    question = did_you_mean(operator, sorted(set().union(*operators.values())))
    raise ValueError(f"no model has the operator {operator}" + (f": {question}" if question else ""))


def _operators(entry: Entry) -> set[str]:
    """The operators of a model, with and without their domains; none for a file that is no model."""
    from compiler.ir import sympy_later  # noqa: F401  (before onnx_ir)

    # isort: split
    import onnx_ir

    try:
        model = onnx_ir.load(entry.path)
    except Exception:  # the check of the model reports the error
        return set()
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    nodes = [node for graph in graphs for node in graph.all_nodes()]
    return {name for node in nodes for name in (node.op_type, f"{node.domain}.{node.op_type}".lstrip("."))}
