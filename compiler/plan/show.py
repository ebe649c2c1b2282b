"""The text of a plan, for readers and golden tests: one line for each step. Equal plans have equal texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from compiler.ir import symbols
from compiler.plan.decode import type_from
from compiler.plan.operators import counted, is_block
from compiler.plan.plan import Plan, StateInfo
from compiler.plan.types import described

__all__ = ["operators", "show", "steps"]

Json = dict[str, Any]


def show(plan: Plan) -> str:
    """The text of the plan's graph: inputs, constants, steps with attributes and types, outputs, and the state."""
    lines = [*_block(plan.document["main"]), *(_state(pair) for pair in plan.state)]
    return symbols.shown("\n".join(lines) + "\n")


def steps(plan: Plan) -> list[Json]:
    """The plan's steps as JSON data, with the names of values as in the text. An attribute may be a list of steps."""
    document = plan.document
    return list(_steps(document["main"], document["origins"]))


def operators(plan: Plan) -> Counter[str]:
    """The plan's steps, and those of its blocks, counted by op."""
    return counted(plan.document["main"])


def _steps(block: Json, origins: list[Json]) -> Iterator[Json]:
    for step in block["steps"]:
        ((op, attributes),) = step["op"].items()
        yield {
            "op": op,
            "inputs": [None if index is None else symbols.shown(_name(block, index)) for index in step["inputs"]],
            "outputs": [None if index is None else symbols.shown(_name(block, index)) for index in step["outputs"]],
            "types": [None if index is None else symbols.shown(_type(block, index)) for index in step["outputs"]],
            "attributes": {
                name: list(_steps(value, origins)) if is_block(value) else value for name, value in attributes.items()
            },
            "origin": None if step["origin"] is None else origins[step["origin"]],
        }


def _block(block: Json) -> Iterator[str]:
    constants = {entry["value"]: entry["constant"] for entry in block["constants"]}
    for index in block["inputs"]:
        yield f"input {_name(block, index)}: {_type(block, index)}"
    for value, constant in sorted(constants.items(), key=lambda item: item[1]):
        yield f"constant {_name(block, value)} = #{constant}: {_type(block, value)}"
    for step in block["steps"]:
        yield from _step(block, step)
    yield "return " + ", ".join(_name(block, index) for index in block["outputs"])


def _state(pair: StateInfo) -> str:
    grows = "" if pair.axis is None else f", growing along axis {pair.axis}"
    return f"state {pair.output} → {pair.input}{grows}"


def _step(block: Json, step: Json) -> Iterator[str]:
    ((op, attributes),) = step["op"].items()
    nested = {name: value for name, value in attributes.items() if is_block(value)}
    shown = [
        f"{name}={json.dumps(value)}" for name, value in attributes.items() if name not in nested and value is not None
    ]
    inputs = ["_" if index is None else _name(block, index) for index in step["inputs"]]
    outputs = ", ".join("_" if index is None else _name(block, index) for index in step["outputs"])
    types = ", ".join("_" if index is None else _type(block, index) for index in step["outputs"])
    yield f"{outputs} = {op}({', '.join([*inputs, *shown])}): {types}"
    for name, value in nested.items():
        yield f"  {name}:"
        yield from (f"    {line}" for line in _block(value))


def _name(block: Json, index: int) -> str:
    name = block["values"][index]["name"]
    return f"%{index}:{name}" if name else f"%{index}"


def _type(block: Json, index: int) -> str:
    return described(type_from(block["values"][index]["type"]))
