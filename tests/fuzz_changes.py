"""Random changes of a plan: of its operations, attributes, types, inputs, arrays and constants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir import dtypes
from compiler.plan.write import _file
from tests.fuzz_schema import DTYPES, FLOATS, INTEGERS, OPS, SCHEMA, SIZES, TEXTS, Chance, Json, generated


@dataclass
class Case:
    """A plan, with its constants, and the inputs by name."""

    plan: dict[str, Json]
    constants: list[Any]
    inputs: dict[str, Any]

    @property
    def main(self) -> dict[str, Json]:
        return self.plan["main"]

    def data(self) -> bytes:
        return b"".join(_file(json.dumps(self.plan, sort_keys=True, separators=(",", ":")), self.constants))


def blocks(plan: Json) -> Iterator[dict[str, Json]]:
    """The main block and the nested ones."""
    if isinstance(plan, dict):
        if "steps" in plan:
            yield plan
        for part in plan.values():
            yield from blocks(part)
    elif isinstance(plan, list):
        for part in plan:
            yield from blocks(part)


def change_attribute(chance: Chance, case: Case) -> None:
    step = chance.choice([step for block in blocks(case.main) for step in block["steps"]])
    [(name, attributes)] = step["op"].items()
    fields = SCHEMA[OPS[name]["$ref"].rsplit("/", 1)[-1]].get("properties", {})
    for field in chance.sample(sorted(fields), min(len(fields), chance.choice([1, 1, 2, 9]))):
        attributes[field] = generated(chance, fields[field])


def change_operation(chance: Chance, case: Case) -> None:
    step = chance.choice([step for block in blocks(case.main) for step in block["steps"]])
    name = chance.choice(sorted(OPS))
    step["op"] = {name: generated(chance, OPS[name])}


def change_type(chance: Chance, case: Case) -> None:
    value = chance.choice([value for block in blocks(case.main) for value in block["values"]])
    shape = None if chance.random() < 0.2 else [chance.choice([None, "n", *SIZES]) for _ in range(chance.randint(0, 5))]
    value["type"] = {"Tensor": {"dtype": chance.choice(DTYPES), "shape": shape}}


def change_wires(chance: Chance, case: Case) -> None:
    """Another input, one input more, one input less, or an absent input."""
    block = chance.choice([block for block in blocks(case.main) if block["steps"]])
    step = chance.choice(block["steps"])
    inputs, other = step["inputs"], chance.choice([None, *range(len(block["values"]))])
    first = int("Loop" in step["op"])  # a Loop without a number of iterations may never end
    if len(inputs) > first and chance.random() < 0.6:
        inputs[chance.randrange(first, len(inputs))] = other
    elif inputs and chance.random() < 0.5:
        inputs.pop()
    else:
        inputs.append(other)


def change_elements(chance: Chance, case: Case) -> None:
    for arrays, key in _arrays(chance, case):
        array = arrays[key] = arrays[key].copy()
        for _ in range(min(array.size, chance.choice([1, 1, 2, array.size]))):
            array.flat[chance.randrange(array.size)] = _element(chance, array.dtype)


def change_shape(chance: Chance, case: Case) -> None:
    """Other sizes, with elements repeated or removed; huge sizes if one of the other sizes is zero."""
    for arrays, key in _arrays(chance, case):
        shape = list(arrays[key].shape)
        if shape and chance.random() < 0.6:
            shape[chance.randrange(len(shape))] = chance.choice([0, 1, 2, 3, 5, 17])
        else:
            shape = [chance.choice([0, 1, 1, 2, 2, 3, 4, 5]) for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 4, 5, 6]))]
        if 0 in shape and chance.random() < 0.5:
            shape = [0] * len(shape)
            shape[chance.randrange(len(shape))] = chance.choice([1, 2**20, 2**31, 2**40])
            arrays[key] = np.zeros([0, *shape], arrays[key].dtype)
        elif arrays[key].size or 0 in shape:
            arrays[key] = np.resize(arrays[key], shape)


def change_dtype(chance: Chance, case: Case) -> None:
    for arrays, key in _arrays(chance, case):
        if arrays[key].dtype != object:
            with np.errstate(all="ignore"):
                wide = arrays[key].astype(np.float64)
                arrays[key] = wide.astype(dtypes.numpy_dtype(chance.choice(DTYPES[:-1])))


def make_constant(chance: Chance, case: Case) -> None:
    """An input of the model becomes a constant."""
    names = {case.main["values"][id]["name"]: id for id in case.main["inputs"]}
    names = {name: id for name, id in names.items() if isinstance(case.inputs.get(name), np.ndarray)}
    if names:
        name = chance.choice(sorted(names))
        case.main["inputs"].remove(names[name])
        case.main["constants"].append({"constant": len(case.constants), "value": names[name]})
        case.constants.append(case.inputs.pop(name))


CHANGES = [
    *[change_attribute] * 4,
    *[change_operation] * 2,
    *[change_elements] * 3,
    *[change_shape] * 3,
    *[make_constant] * 2,
    change_dtype,
    change_type,
    change_wires,
]


def _arrays(chance: Chance, case: Case) -> list[tuple[Any, Any]]:
    """A list of one random array of the case, as a collection and a key; empty without arrays."""
    places: list[tuple[Any, Any]] = [(case.constants, index) for index in range(len(case.constants))]
    places += [(case.inputs, name) for name, value in case.inputs.items() if isinstance(value, np.ndarray)]
    places += [
        (value, index)
        for value in case.inputs.values()
        if isinstance(value, list)
        for index, item in enumerate(value)
        if isinstance(item, np.ndarray)
    ]
    return [chance.choice(places)] if places else []


def _element(chance: Chance, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "O":
        return chance.choice(TEXTS)
    if dtype.kind == "b":
        return chance.random() < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return min(max(chance.choice(INTEGERS), limits.min), limits.max)
    with np.errstate(all="ignore"):
        return np.float64(chance.choice([*FLOATS, np.nan, np.inf, -np.inf])).astype(dtype)
