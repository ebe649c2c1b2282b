"""The runtime runs every model that the compiler accepts, and its results equal onnxruntime's.

The models are small, and vary the element types, ranks and attributes that the schemas of the operators allow. The
compiler refuses such a model, or its plan runs without an error. An error that depends on elements, such as an index
out of range, does not count if `VALUES` of `tests/accepted/ledger.py` lists it, and the model runs with other elements.
"""

from __future__ import annotations

import re

import pytest

from compiler.cli.ops import _operators
from tests.accepted.bases import Key, bases
from tests.accepted.ledger import KNOWN
from tests.accepted.outcome import outcomes
from tests.accepted.variants import of_operator

OPERATORS = [("" if domain == "ai.onnx" else domain, name) for name, _, _, domain in _operators()]


@pytest.mark.parametrize("key", OPERATORS, ids=lambda key: ".".join(filter(None, key)))
def test_what_compiles_runs(key: Key) -> None:
    assert key in bases(), f"no model of {key}: add a row to SCRATCH in its file of tests/lower/"
    found = [(model.label, each) for model, ways in of_operator(bases()[key]) for each in outcomes(model, ways)]
    assert any(not each.refusal for _, each in found), f"the compiler refuses every small model of {key}"
    problems = [f"{label}: {each.problem}" for label, each in found if each.problem]
    known = KNOWN.get(key, {})
    unknown = [problem for problem in problems if not any(re.search(pattern, problem) for pattern in known)]
    assert not unknown, f"refuse these models when compiling, or mend the kernel: {unknown[:20]}"
    stale = [pattern for pattern in known if not any(re.search(pattern, problem) for problem in problems)]
    assert not stale, f"no model has these problems: take the lines out of tests/accepted/ledger.py: {stale}"


def test_the_ledger_names_operators() -> None:
    assert KNOWN.keys() <= set(OPERATORS)
