"""The rows of benchmarks/suite: each is a valid model, and its plan gives onnxruntime's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from benchmarks import kernels

ROWS = kernels.rows()


@pytest.mark.parametrize("name", ROWS)
def test_a_plan_computes_the_row(name: str) -> None:
    generator = np.random.default_rng(0)
    model = kernels.model(ROWS[name], generator)
    inputs = kernels.arrays(ROWS[name]["inputs"], generator)
    assert all(set(node.input) <= known(model, index) for index, node in enumerate(model.graph.node))
    report = compiler.verify(model, inputs=inputs)
    assert report.ok, report


def known(model: Any, index: int) -> set[str]:
    """The names that the node of this index may use: a row is in order, and nothing in it is undefined."""
    graph = model.graph
    before = (output for node in graph.node[:index] for output in node.output)
    return {"", *(value.name for value in (*graph.input, *graph.initializer)), *before}


def test_a_repeated_row_is_a_chain() -> None:
    row = {"inputs": {"y0": "float[2]"}, "weights": {"b": "float[2]"}, "repeat": 3, "body": "y{next} = Add (y{i}, b)"}
    nodes = kernels.model(row, np.random.default_rng(0)).graph.node
    assert [(*node.input, *node.output) for node in nodes] == [(f"y{i}", "b", f"y{i + 1}") for i in range(3)]


def test_a_name_occurs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "SUITE", tmp_path)
    (tmp_path / "a.toml").write_text("[one]\ntrees = 1\n[two]\ntrees = 2\n")
    (tmp_path / "b.toml").write_text("[two]\ntrees = 2\n[three]\ntrees = 3\n")
    with pytest.raises(ValueError, match=r"b\.toml: an earlier file has these rows too: two$"):
        kernels.rows()
    (tmp_path / "b.toml").write_text("[three]\ntrees = 3\n")
    assert [*kernels.rows()] == ["one", "two", "three"]
