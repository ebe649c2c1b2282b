"""The operators of a plan, in the JSON form of its steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

__all__ = ["counted", "is_block", "op_name"]

Json = dict[str, Any]

CUSTOM = "Custom"
"""The op of custom operators."""


def op_name(op: Json) -> str:
    """The name of a step's op. A custom operator has its full name, such as `my.domain::Name`."""
    ((name, attributes),) = op.items()
    return f"{attributes['domain']}::{attributes['name']}" if name == CUSTOM else str(name)


def counted(block: Json) -> Counter[str]:
    """The names of the ops of a block, and of the blocks of its steps, with the number of steps."""
    counts: Counter[str] = Counter()
    for step in block["steps"]:
        counts[op_name(step["op"])] += 1
        (attributes,) = step["op"].values()
        for value in attributes.values():
            if is_block(value):
                counts += counted(value)
    return counts


def is_block(value: Any) -> bool:
    """Whether an attribute of a step is a block."""
    return isinstance(value, dict) and isinstance(value.get("steps"), list)
