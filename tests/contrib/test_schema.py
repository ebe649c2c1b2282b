"""Every attribute and every input of onnxruntime's schemas is exercised by a case, or refused."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

import compiler
from compiler import CompileError, contrib
from tests.contrib.cases import Case

FILES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
CASES: list[Case] = [
    each.values[0]
    for name in FILES
    if name not in ("test_schema", "test_models")
    for each in import_module(f"tests.contrib.{name}").CASES
]
SCHEMAS = {
    (each.domain.replace("ai.onnx", ""), each.name): each
    for each in state.get_all_operator_schema()
    if (each.domain.replace("ai.onnx", ""), each.name) in contrib.FAMILIES
}
OTHER_VALUES = {"INT": 97, "FLOAT": 0.123, "STRING": "nonsense", "INTS": [97], "FLOATS": [0.123]}
"""A value of each kind of attribute that no operator accepts silently."""


def cases_of(key: tuple[str, str]) -> list[Case]:
    return [case for case in CASES if (case.domain, case.op_type) == key]


def attributes() -> Iterator[Any]:
    for (domain, name), schema in SCHEMAS.items():
        for attribute in schema.attributes:
            yield pytest.param((domain, name), attribute, id=f"{name} {attribute}")


def inputs() -> Iterator[Any]:
    for (domain, name), schema in SCHEMAS.items():
        for index, each in enumerate(schema.inputs):
            yield pytest.param((domain, name), index, each.name, id=f"{name} {each.name}")


def test_every_expansion_has_a_schema_and_cases() -> None:
    assert SCHEMAS.keys() == contrib.FAMILIES.keys()
    assert all(cases_of(key) for key in SCHEMAS)


def test_the_table_of_families_is_current() -> None:
    made = runpy.run_path(str(Path(__file__).parents[2] / "tools/families.py"))
    assert made["FILE"].read_text() == made["text"](), "run `make generate`"


@pytest.mark.parametrize(("key", "attribute"), list(attributes()))
def test_attributes(key: tuple[str, str], attribute: str) -> None:
    given = cases_of(key)
    if any(attribute in case.attributes for case in given):
        return
    kind = str(SCHEMAS[key].attributes[attribute].type).rpartition(".")[2]
    first = given[0]
    model = Case(
        first.op_type,
        first.inputs,
        {**first.attributes, attribute: OTHER_VALUES[kind]},
        first.outputs,
        constants=first.constants,
        domain=first.domain,
    ).model()
    with pytest.raises(CompileError, match=attribute):
        compiler.compile(model)


@pytest.mark.parametrize(("key", "index", "name"), list(inputs()))
def test_inputs(key: tuple[str, str], index: int, name: str) -> None:
    given = cases_of(key)
    if any(index < len(case.inputs) and case.inputs[index] is not None for case in given):
        return
    first = given[0]
    more = [*first.inputs, *[None] * (index - len(first.inputs)), np.zeros(1, np.float32)]
    more = [*more[:index], np.zeros(1, np.float32), *more[index + 1 :]]
    model = Case(
        first.op_type, more, first.attributes, first.outputs, constants=first.constants, domain=first.domain
    ).model()
    with pytest.raises(CompileError, match=name):
        compiler.compile(model)
