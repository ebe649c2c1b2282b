"""GatherND that takes whole slices becomes Gather; every other one stays."""

import numpy as np
import pytest

from compiler.passes.cancel_transposes import cancel_transposes
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_gather import recognize_gather

HEAD = """agraph (float[2, 4, 5] x, int64[3] i) => (float y)
    <int64[2, 1] rows = {3, -1}, int64[2, 3, 2] separate = {0, 1, 0, 2, 0, 0, 3, 1, 3, 2, 3, 0},
    int64[2, 2, 2] mixed = {0, 1, 0, 2, 1, 1, 0, 2}, int64[1] last = {-1}, int64[1] first = {0}>"""


def run(check_pass, parse, nodes):
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}")
    report = check_pass(recognize_gather, model)
    cancel_transposes.run(model)
    return [node.op_type for node in model.graph if node.op_type != "Exp"], [missed.reason for missed in report.missed]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("t = Transpose<perm = [1, 0, 2]>(x)  a = GatherND(t, rows)", ["Gather", "Transpose"]),
        ("t = Transpose<perm = [1, 0, 2]>(x)  g = GatherND(t, rows)  a = Transpose<perm = [1, 0, 2]>(g)", ["Gather"]),
        ("t = Transpose<perm = [2, 0, 1]>(x)  g = GatherND(t, rows)  a = Transpose<perm = [1, 2, 0]>(g)", ["Gather"]),
        ("t = Transpose(x)  g = GatherND(t, separate)  a = Transpose<perm = [2, 1, 0]>(g)", ["Gather", "Gather"]),
        ("t = Transpose<perm = [1, 2, 0]>(x)  a = GatherND(t, separate)", ["Gather", "Gather", "Transpose"]),
        ("u = Unsqueeze(i, last)  j = Mul(u, first)  t = Transpose<perm = [2, 0, 1]>(x)  a = GatherND(t, j)", None),
        ("a = GatherND(x, mixed)", None),
        ("a = GatherND<batch_dims = 1>(x, rows)", None),
    ],
)
def test_slices(check_pass, parse, nodes, left):
    found, missed = run(check_pass, parse, nodes)
    if left is None:
        assert "GatherND" in found and len(missed) == 1
    else:
        assert found == left and not missed


def test_places_known_at_run_time(parse):
    nodes = "j = Unsqueeze(i, last)  t = Transpose<perm = [2, 0, 1]>(x)  a = GatherND(t, j)"
    model = parse(f"{HEAD} {{ {nodes}  b = Transpose<perm = [1, 2, 0]>(a)  y = Exp(b) }}")
    for step in (infer_shapes, recognize_gather, cancel_transposes):
        step.run(model)
    node = model.graph[0]
    assert (node.op_type, [value.name for value in node.inputs], node.attributes["axis"].as_int()) == (
        "Gather",
        ["x", "i"],
        2,
    )


X = np.random.default_rng(0).normal(size=(2, 3, 8, 6)).astype("float32")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exporter", ["dynamo", "script"])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_exported_indexing(check_export, exporter, axis):
    index = (slice(None),) * axis + ([2, 0, 1, -1],)
    assert check_export(lambda x: x[index], [X], exporter=exporter, tolerance=0) == ["Gather"]
