"""Random values of a schema of plans, with extreme numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from compiler import _runtime

SCHEMA = json.loads(_runtime.schema())["$defs"]
OPS = {name: kind["properties"][name] for kind in SCHEMA["Op"]["oneOf"] for name in kind["required"]}
DTYPES = SCHEMA["DType"]["enum"]
SIZES = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    64,
    65,
    255,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
INTEGERS = [*SIZES, -1, -2, -3, -8, -(2**31), -(2**62), -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e30, -1e30, 3.4e38, 1e300]
TEXTS = ["", "a", "ij,jk->ik", "...i->...", "ii->i", "[a", "1.5", "nan", "a" * 1000]

Json = Any
Chance = random.Random


def generated(chance: Chance, schema: dict[str, Json], depth: int = 0) -> Json:
    """A random value that the schema allows. Many numbers are extreme."""
    if "$ref" in schema:
        return generated(chance, SCHEMA[schema["$ref"].rsplit("/", 1)[-1]], depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            flat = [each for each in schema[choice] if not {"$ref", "properties", "items"} & each.keys()]
            return generated(chance, chance.choice(flat if depth > 7 and flat else schema[choice]), depth + 1)
    kind = schema["type"]
    return GENERATORS[chance.choice(kind) if isinstance(kind, list) else kind](chance, schema, depth)


def _integer(chance: Chance, schema: dict[str, Json], _: int) -> int:
    number = chance.choice(INTEGERS) if chance.random() < 0.5 else chance.randint(0, 4)
    low, bits = schema.get("minimum", -(2**63)), int(schema.get("format", "int64").strip("uint") or 64)
    return max(low, min(number, 2**bits - 1 if low == 0 else 2 ** (bits - 1) - 1))


def _array(chance: Chance, schema: dict[str, Json], depth: int) -> list[Json]:
    if "prefixItems" in schema:
        return [generated(chance, item, depth + 1) for item in schema["prefixItems"]]
    count = chance.choice([0, 1, 1, 2, 2, 2, 3, 4, 6]) if depth < 8 else 0
    count = max(schema.get("minItems", 0), min(count, schema.get("maxItems", count)))
    return [generated(chance, schema["items"], depth + 1) for _ in range(count)]


def _object(chance: Chance, schema: dict[str, Json], depth: int) -> dict[str, Json]:
    return {name: generated(chance, field, depth + 1) for name, field in schema.get("properties", {}).items()}


GENERATORS: dict[str, Callable[[Chance, dict[str, Json], int], Json]] = {
    "null": lambda chance, schema, depth: None,
    "boolean": lambda chance, schema, depth: chance.random() < 0.5,
    "number": lambda chance, schema, depth: chance.choice(FLOATS),
    "string": lambda chance, schema, depth: chance.choice(TEXTS),
    "integer": _integer,
    "array": _array,
    "object": _object,
}
