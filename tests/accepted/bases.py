"""Small models of every operator with valid inputs, from the onnx package and from the tables of other tests.

The onnx package tests every operator of the standard. Any other operator has a row in a file of `tests/lower` or a case
in `tests/contrib`, because other tests demand it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser

from compiler.ir import onnx_schema
from tests.accepted.small import Small, names_read
from tests.contrib.test_schema import CASES
from tests.onnx_backend.cases import data_sets, load_cases
from tests.scratch.table import ROWS

Key = tuple[str, str]
SIZE = 4
"""The size of an axis that has a name in a table, and a given size that is larger than `LARGEST`."""
LARGEST = 20_000
"""The most elements of an input of a variant."""


@functools.cache
def bases() -> dict[Key, list[Small]]:
    """The models of each operator, those with different attributes, ranks or optional inputs."""
    found: dict[Key, dict[object, Small]] = defaultdict(dict)
    others: dict[Key, Small] = {}
    for each in (*_of_onnx(), *_of_contrib(), *_of_scratch()):
        found[each.node.domain, each.node.op_type].setdefault(_kind(each), each)
        for node in each.nodes:
            others.setdefault((node.domain, node.op_type), each)
    listed = {key: list(models.values()) for key, models in found.items()}
    return {key: [each] for key, each in others.items()} | listed


def _kind(model: Small) -> object:
    """What distinguishes a model from others of its operator."""
    texts = [(each.name, each.s) for each in model.node.attribute]
    return str(texts), tuple(map(bool, model.node.input)), tuple(np.ndim(value) for _, value in model.arrays())


def _of_onnx() -> Iterator[Small]:
    for name, case in load_cases().items():
        if case.kind == "node" and case.model is not None and len(case.model.graph.node) == 1:
            inputs, _ = next(data_sets(case, case.model))
            names = [info.name for info in case.model.graph.input]
            yield _small(name, case.model, dict(zip(names, inputs, strict=True)))


def _of_contrib() -> Iterator[Small]:
    for case in CASES:
        model = case.model()
        yield _small(case.op_type, model, {f"x{i}": array for i, array in enumerate(case.inputs) if array is not None})


def _of_scratch() -> Iterator[Small]:
    """The rows with small sizes, and with the output `y` instead of its size."""
    for row in ROWS:
        model = onnx.parser.parse_model(row.graph)
        names = {dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim} - {""}
        last = "y" if any("y" in node.output for node in model.graph.node) else "s"
        given = {name: _with_small_sizes(value) for name, value in row.given.items()}
        yield _small(row.nodes, model, row._replace(given=given).feeds(dict.fromkeys(names, SIZE)), [last])


def _with_small_sizes(value: Any) -> Any:
    """The integers of an input. An operator such as Range or Resize may take them as sizes of its result."""
    is_integer = isinstance(value, np.int64 | np.ndarray) and value.dtype == np.int64
    return np.where(value > LARGEST, SIZE, value) if is_integer else value


def _small(label: str, model: onnx.ModelProto, inputs: dict[str, Any], outputs: Sequence[str] = ()) -> Small:
    """A model of the nodes that the outputs need."""
    outputs = outputs or [info.name for info in model.graph.output]
    nodes: list[onnx.NodeProto] = []
    needed = set(outputs)
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            nodes.insert(0, node)
            needed |= names_read([node])
    kinds = {info.name: info.type for info in model.graph.input if not info.type.HasField("tensor_type")}
    opsets = {each.domain: each.version for each in model.opset_import}
    if len(nodes) == 1 and not any(each.type == onnx.AttributeProto.GRAPH for each in nodes[0].attribute):
        # onnxruntime lacks the newest opsets, but usually has the operator.
        opset = opsets.get(nodes[0].domain, 1)
        version = onnx_schema.since_version(nodes[0].domain, nodes[0].op_type, opset)
        opsets[nodes[0].domain] = version or opset
    given = {
        name: np.asarray(value) if isinstance(value, np.generic) else value
        for name, value in inputs.items()
        if name in needed
    }
    return Small(label, tuple(nodes), given, kinds, tuple(outputs), opsets)
