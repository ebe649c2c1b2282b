"""The conversion of the main block of a plan to a `Graph`."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import numpy as np

from compiler.diff.graph import Array, Constant, Graph, Node, digest_of, prefix_of_places
from compiler.ir import dtypes
from compiler.ir.origin import Origin
from compiler.plan import Plan
from compiler.plan.header import read_header
from compiler.plan.operators import is_block, op_name

__all__ = ["plan_graph"]

Json = dict[str, Any]


def plan_graph(plan: Plan) -> Graph:
    """The main block of a plan. Values without a name, and those whose name occurs twice, have an id of their place."""
    document = plan.document
    main, found = document["main"], _constants(plan)
    names = [value["name"] for value in main["values"]]
    ids = _ids(names, {*main["inputs"], *main["outputs"]})
    held = {ids[each["value"]]: found[each["constant"]] for each in main["constants"]}
    return Graph(
        "plan",
        {ids[at]: str(info) for at, info in zip(main["inputs"], plan.inputs, strict=True)},
        {ids[at]: str(info) for at, info in zip(main["outputs"], plan.outputs, strict=True)},
        tuple(_node(step, ids, document["origins"], found) for step in main["steps"]),
        {id: Constant(id, each.dtype, each.shape, each.bytes, each.read) for id, each in held.items()},
        frozenset(name for name, id in zip(names, ids, strict=True) if name == id),
    )


def _ids(names: list[str], ends: set[int]) -> list[str]:
    """The ids of values: their names; but the place for one without a name, or with that of an input or output."""
    kept = {names[at]: at for at in ends}
    counts, prefix = Counter(names), prefix_of_places(names)
    return [
        name if name and kept.get(name, at) == at and (counts[name] == 1 or at in ends) else f"{prefix}{at}"
        for at, name in enumerate(names)
    ]


def _constants(plan: Plan) -> list[Constant]:
    """The constants of a plan, in its order."""
    file = io.BytesIO(plan.data)
    header = read_header(file)
    data = memoryview(plan.data)[file.tell() :]
    return [_constant(str(at), each, header, data) for at, each in enumerate(plan.document["constants"])]


def _constant(key: str, described: Json, header: Json, data: memoryview) -> Constant:
    """A constant from its description in the plan, and its bytes in the file."""
    ((kind, content),) = described.items()
    shape = tuple(content["shape"])
    if kind == "Strings":
        size = sum(len(each.encode()) for each in content["data"])
        return Constant(key, "string", shape, size, lambda: np.array(content["data"], object).reshape(shape))
    first, last = header[key]["data_offsets"]

    def read() -> Array:
        dtype = dtypes.numpy_dtype(content["dtype"])
        stored = dtypes.to_stored(np.zeros(0, dtype)).dtype
        return dtypes.from_stored(content["dtype"], np.frombuffer(data[first:last], stored)).reshape(shape)

    return Constant(key, content["dtype"], shape, last - first, read)


def _node(step: Json, ids: list[str], origins: list[Json], constants: list[Constant]) -> Node:
    (attributes,) = step["op"].values()
    from_ = None if step["origin"] is None else origins[step["origin"]]
    return Node(
        op_name(step["op"]),
        tuple(None if at is None else ids[at] for at in step["inputs"]),
        tuple(None if at is None else ids[at] for at in step["outputs"]),
        {name: _attribute(each, constants) for name, each in attributes.items()},
        Origin() if from_ is None else Origin(tuple(from_["nodes"]), from_["module"], source=from_["source"]),
    )


def _attribute(value: Any, constants: list[Constant]) -> str:
    """The text of an attribute. The text of a block has a digest instead of its steps."""
    if is_block(value):
        count = len(value["steps"])
        return f"{count} step{'s' * (count != 1)} {digest_of(_plain(value, constants))}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _plain(block: Json, constants: list[Constant]) -> Json:
    """A block without places in the plan's lists of constants and origins."""
    steps = [
        {
            **{key: each for key, each in step.items() if key not in ("op", "origin")},
            "op": {
                op: {name: _attribute(each, constants) for name, each in attributes.items()}
                for op, attributes in step["op"].items()
            },
        }
        for step in block["steps"]
    ]
    held = [[each["value"], *constants[each["constant"]].content] for each in block["constants"]]
    return {**block, "steps": steps, "constants": held}
