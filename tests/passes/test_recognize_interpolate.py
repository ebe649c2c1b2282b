"""Gathers with the indices of Interpolate become Interpolate with the same results; other Gathers stay."""

import numpy as np
import onnx_ir as ir
import pytest

import compiler
from compiler.passes.recognize_interpolate import recognize_interpolate

HALF = np.float32(0.5)
SIZES = [(8, 16), (8, 13), (8, 5), (8, 4), (7, 21), (2, 3), (3, 2), (100, 170), (97, 64), (33, 1000), (1000, 333)]
SCALES = [1.7, 2.0, 0.6, 3.3, 1.01, 0.35]


def graph(size, nodes, head=""):
    return f"agraph (float[1, 2, {size}] x) => (float[1, 2, N] y) {head} {{ {nodes} }}"


def numbers(name, array):
    kind = "float" if array.dtype == np.float32 else "int64"
    return f"{kind}[{len(array)}] {name} = {{{', '.join(str(item) for item in array.tolist())}}}"


def nearest(places):
    return f"<{numbers('places', places)}>", "y = Gather<axis = 2>(x, places)"


def linear(low, high, part):
    head = f"<{numbers('low', low)}, {numbers('high', high)}, {numbers('part', part)}>"
    nodes = """a = Gather<axis = 2>(x, low)  b = Gather<axis = 2>(x, high)  d = Sub(b, a)  s = Mul(d, part)
        y = Add(a, s)"""
    return head, nodes


def resized(size, scale=None, new=None):
    """The factor by which PyTorch multiplies indices of the new size, and that size."""
    if new is not None:
        return np.float32(size) / np.float32(new), new
    return np.float32(1 / scale), int(size * scale)


TARGETS = [(size, {"new": new}) for size, new in SIZES]
TARGETS += [(size, {"scale": scale}) for size in (6, 8, 64, 1001) for scale in SCALES if int(size * scale) != size]


@pytest.mark.parametrize(("size", "target"), TARGETS)
def test_nearest_exact_of_pytorch(parse, size, target):
    factor, new = resized(size, **target)
    places = np.minimum(np.floor((np.arange(new, dtype=np.float32) + HALF) * factor), size - 1).astype(np.int64)
    head, nodes = nearest(places)
    compare(parse(graph(size, nodes, head)), size, lambda x: x[..., places], tolerance=0)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(("size", "target"), TARGETS)
def test_linear_of_pytorch(parse, size, target, corners):
    factor, new = resized(size, **target)
    at = np.arange(new, dtype=np.float32)
    where = at * np.float32((size - 1) / (new - 1)) if corners else np.maximum((at + HALF) * factor - HALF, 0)
    low = np.minimum(where.astype(np.int64), size - 1)
    high, part = np.minimum(low + 1, size - 1), np.clip(where - low, 0, 1).astype(np.float32)
    head, nodes = linear(low, high, part)
    model = parse(graph(size, nodes, head))
    compare(model, size, lambda x: x[..., low] + (x[..., high] - x[..., low]) * part, tolerance=2**-20 * size)


def compare(model, size, expected, tolerance):
    """Compiles the model to one Interpolate, and compares its results."""
    plan = compiler.compile(ir.serde.serialize_model(model))
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]] == ["Interpolate"]
    x = np.random.default_rng(0).uniform(-1, 1, (1, 2, size)).astype("float32")
    (found,) = compiler.load(plan, threads=1).run({"x": x}).values()
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "places",
    [[0, 1, 2], [0, 2, 1, 3], [-1, 0, 1, 2], [0, 0, 0, 1, 2, 3, 4, 5, 6, 7], [3], [0, 0, 1, 1, 2, 2, 3, 3], [5, 6, 7]],
)
def test_other_places_stay(check_pass, places):
    head, nodes = nearest(np.array(places))
    report = check_pass(recognize_interpolate, graph(8, nodes, head))
    assert [miss.reason for miss in report.missed] == ["the indices are not the nearest of any factor"]


@pytest.mark.parametrize(("index", "amount"), [(3, 1e-4), (0, 1e-3), (-1, -1e-3), (3, 2.0**-23)])
def test_other_parts_stay(check_pass, index, amount):
    where = np.maximum((np.arange(16, dtype=np.float32) + HALF) / 2 - HALF, 0)
    low = where.astype(np.int64)
    part = (where - low).astype(np.float32)
    part[index] += np.float32(amount)
    low[index] -= low[index] == 7
    head, nodes = linear(low, np.minimum(low + 1, 7), part)
    report = check_pass(recognize_interpolate, graph(8, nodes, head), same_results=None)
    assert "indices and parts are not those of any factor" in [miss.reason for miss in report.missed]


def test_infinities_are_weighted_and_not_subtracted(parse):
    where = np.clip((np.arange(8, dtype=np.float32) + HALF) / 2 - HALF, 0, 3)
    low = where.astype(np.int64)
    head, nodes = linear(low, np.minimum(low + 1, 3), (where - low).astype(np.float32))
    proto = ir.serde.serialize_model(parse(graph(4, nodes, head)))
    x = np.array([[[1, 2, 3, np.inf]] * 2], np.float32)
    with np.errstate(invalid="ignore"):
        written = x[..., low] + (x[..., np.minimum(low + 1, 3)] - x[..., low]) * (where - low)
    weighted = [1, 1.25, 1.75, 2.25, 2.75, np.inf, np.inf, np.inf]
    for optimize, expected in ((True, [weighted] * 2), (False, written[0])):
        plan = compiler.compile(proto, compiler.Options(optimize=optimize))
        (found,) = compiler.load(plan, threads=1).run({"x": x}).values()
        np.testing.assert_array_equal(found[0], expected)
    assert np.isnan(written[..., -1]).all()


def test_nearest_places_of_two_axes_are_one_node(check_pass, parse):
    text = """agraph (float[1, 2, 3, 4] x) => (float[1, 2, 6, 8] y)
        <int64[6] rows = {0, 0, 1, 1, 2, 2}, int64[8] columns = {0, 0, 1, 1, 2, 2, 3, 3}> {
            a = Gather<axis = 3>(x, columns)
            y = Gather<axis = -2>(a, rows)
        }"""
    model = parse(text)
    check_pass(recognize_interpolate, model, same_results=None)
    (node,) = model.graph
    assert (node.attributes["axes"].as_ints(), node.attributes["sizes"].as_ints()) == ((2, 3), (6, 8))


def interpolate(**options):
    def function(x):
        return pytest.importorskip("torch", reason="needs PyTorch").nn.functional.interpolate(x, **options)

    return function


SOUND, IMAGE = (np.random.default_rng(0).normal(size=(2, 3, 8, 6)[:rank]).astype("float32") for rank in (3, 4))
EXPORTED = [
    (SOUND, {"scale_factor": 2, "mode": "nearest-exact"}),
    (SOUND, {"scale_factor": 1.7, "mode": "nearest-exact"}),
    (SOUND, {"size": 5, "mode": "nearest-exact"}),
    (IMAGE, {"scale_factor": 2, "mode": "nearest-exact"}),
    (IMAGE, {"size": (13, 5), "mode": "nearest-exact"}),
    (IMAGE, {"size": (8, 9), "mode": "nearest-exact"}),
    (SOUND, {"scale_factor": 2, "mode": "linear"}),
    (SOUND, {"scale_factor": 1.7, "mode": "linear"}),
    (SOUND, {"scale_factor": 0.6, "mode": "linear"}),
    (SOUND, {"size": 13, "mode": "linear"}),
    (SOUND, {"scale_factor": 2, "mode": "linear", "align_corners": True}),
    (SOUND, {"size": 13, "mode": "linear", "align_corners": True}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("exporter", "opset", "dims"), [("dynamo", 18, [{0: "batch"}]), ("dynamo", 20, None)])
@pytest.mark.parametrize(
    ("x", "options"), EXPORTED, ids=lambda value: "-".join(map(str, getattr(value, "shape", value)))
)
def test_exported_from_torch(check_export, x, options, exporter, opset, dims):
    found = check_export(interpolate(**options), [x], exporter=exporter, opset=opset, dims=dims, tolerance=4e-6)
    assert found == ["Interpolate"]
