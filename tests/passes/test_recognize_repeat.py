"""Repetition of each element of spatial axes becomes Interpolate; other repetition stays."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

import compiler
from compiler.ir.text import graph_text
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_repeat import recognize_repeat

HEAD = """agraph (float[B, 2, 3, 4] x, float[2, 2, 3, T] z, float[1, 2, 3, 4] w) => (float[B, C, D, E] y)
    <int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4}, int64[1] last = {-1}, int64[2] both = {3, 5},
    int64[5] rows = {1, 1, 1, 2, 1}, int64[5] columns = {1, 1, 1, 1, 3}, int64[6] twice = {1, 1, 1, 2, 1, 3},
    int64[5] channels = {1, 1, 2, 1, 1}, int64[5] tiled = {1, 1, 1, 1, 2},
    int64[4] high = {0, 2, 6, 4}, int64[4] wide = {0, 2, 3, 12}, int64[4] large = {0, 2, 6, 12},
    int64[6] no_rows = {1, 1, 1, 0, 1, 3}, int64[4] empty = {1, 2, 0, 12},
    int64[4] many = {0, 4, 3, 4}, int64[4] rest = {2, 2, 3, -1}, int64[4] other = {0, 2, 12, 6}>"""
TAIL = "mode='nearest', nearest_mode='floor', scales="
CASES = {
    "Expand of rows": (
        "u = Unsqueeze(x, three)  e = Expand(u, rows)  a = Reshape(e, high)",
        f"x, axes=[2], coordinate_transformation_mode='asymmetric', {TAIL}[2], sizes=[6]",
    ),
    "Expand of both": (
        "u = Unsqueeze(x, both)  e = Expand(u, twice)  a = Reshape(e, large)",
        f"x, axes=[2, 3], coordinate_transformation_mode='asymmetric', {TAIL}[2, 3], sizes=[6, 12]",
    ),
    "Tile of columns": (
        "u = Unsqueeze(x, four)  e = Tile(u, columns)  a = Reshape(e, wide)",
        f"x, axes=[3], coordinate_transformation_mode='asymmetric', {TAIL}[3], sizes=[12]",
    ),
    "Concat with itself": (
        "u = Unsqueeze(x, last)  e = Concat<axis = -1>(u, u, u)  a = Reshape(e, wide)",
        f"x, axes=[3], coordinate_transformation_mode='asymmetric', {TAIL}[3], sizes=[12]",
    ),
    "symbolic size": (
        "u = Unsqueeze(z, four)  e = Expand(u, columns)  a = Reshape(e, rest)",
        f"z, axes=[3], coordinate_transformation_mode='asymmetric', {TAIL}[3]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_repetition(check_pass, parse, name):
    nodes, expected = CASES[name]
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}")
    check_pass(recognize_repeat, model, same_results=None)
    assert f"candle.plan.Interpolate({expected})" in graph_text(model.graph)


@pytest.mark.parametrize("name", CASES)
def test_results(parse, name):
    text = f"{HEAD} {{ {CASES[name][0]}  y = Exp(a) }}"
    model = parse(text)
    proto = ir.serde.serialize_model(model)
    plan = compiler.compile(proto)
    assert any("Interpolate" in step["op"] for step in plan.document["main"]["steps"])
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=(2, 2, 3, 4)).astype("float32") for name in ("x", "z")} | {
        "w": np.ones((1, 2, 3, 4), np.float32)
    }
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    (found,) = compiler.load(plan, threads=1).run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            "u = Unsqueeze(x, two)  e = Expand(u, channels)  a = Reshape(e, many)",
            "it does not repeat one or two spatial axes",
        ),
        ("u = Unsqueeze(x, four)  e = Expand(u, tiled)  a = Reshape(e, high)", "it does not repeat each element"),
        (
            "u = Unsqueeze(w, both)  e = Expand(u, no_rows)  a = Reshape<allowzero = 1>(e, empty)",
            "it does not repeat each element",
        ),
        ("u = Unsqueeze(x, two)  e = Tile(u, tiled)  a = Reshape(e, high)", "it does not repeat each element"),
        ("u = Unsqueeze(x, both)  e = Expand(u, twice)  a = Reshape(e, other)", "it does not repeat each element"),
        (
            "u = Unsqueeze(x, last) v = Neg(u) e = Concat<axis = 4>(u, v) a = Reshape(e, rest)",
            "it does not repeat each element",
        ),
    ],
)
def test_other_repetition_stays(check_pass, parse, nodes, reason):
    model = parse(f"{HEAD} {{ {nodes}  y = Exp(a) }}")
    infer_shapes.run(model)
    report = recognize_repeat.run(model)
    assert not report.fired and reason in report.missed[0].reason


X = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype("float32")


def expanded(x):
    apart = x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 3)
    return apart.reshape(x.shape[0], x.shape[1], x.shape[2] * 2, x.shape[3] * 3)


def stacked(x):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    return torch.stack([x, x], -1).reshape(*x.shape[:3], -1)


EXPORTED = {
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=2),
    "repeat_interleave twice": lambda x: x.repeat_interleave(2, dim=2).repeat_interleave(3, dim=3),
    "expand": expanded,
    "repeat": lambda x: x.unsqueeze(-1).repeat(1, 1, 1, 1, 3).reshape(*x.shape[:3], -1),
    "stack": stacked,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exporter", ["dynamo", "script"])
@pytest.mark.parametrize(
    ("name", "dims"), [*((name, None) for name in EXPORTED), ("repeat", [{0: "batch"}]), ("stack", [{3: "width"}])]
)
def test_exported_from_torch(check_export, name, exporter, dims):
    found = check_export(EXPORTED[name], [X], exporter=exporter, dims=dims, tolerance=0)
    assert "Interpolate" in found and {"Expand", "Tile", "Concat"}.isdisjoint(found)
