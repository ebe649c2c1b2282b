"""`Options.max_memory`: the limit of a run's memory, and the error if a run exceeds it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler import Options, RunError

FLOATS = 4
ROOT = Path(__file__).parent.parent


def session_of(graph, max_memory):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {graph}')
    return compiler.load(compiler.compile(model, Options(max_memory=max_memory, optimize=False)), threads=2)


CHAIN = "(float[n] x) => (float[n] y) { a = Neg(x)  b = Exp(a)  c = Sin(b)  d = Reshape(c, shape)  y = Cos(d) }"
CHAIN = CHAIN.replace("{", "<int64[1] shape = {-1}> {", 1)


def test_values_that_died_do_not_count():
    x = np.ones(1000, np.float32)
    [y] = session_of(CHAIN, 3 * 1000 * FLOATS).run({"x": x}).values()
    [expected] = session_of(CHAIN, None).run({"x": x}).values()
    np.testing.assert_array_equal(y, expected)
    with pytest.raises(RunError, match="max_memory leaves 3999") as error:
        session_of(CHAIN, 1000 * FLOATS - 1).run({"x": x})
    assert error.value.kind == "memory"


GROWING = {
    "Expand": "(float[n] x, int64[2] s) => (float[a, b] y) { y = Expand(x, s) }",
    "ConstantOfShape": "(float[n] x, int64[2] s) => (float[a, b] y) { y = ConstantOfShape(s) }",
    "Tile": "(float[n, n] x, int64[2] s) => (float[a, b] y) { y = Tile(x, s) }",
    "RandomNormalLike": "(float[n] x, int64[2] s) => (float[a, b] y) { z = Expand(x, s) y = RandomNormalLike(z) }",
    "Resize": '(float[n, n] x, int64[2] s) => (float[a, b] y) { y = Resize<mode="linear">(x, , , s) }',
}


@pytest.mark.parametrize("name", GROWING)
def test_sizes_that_are_computed(name):
    rank = 2 if "n, n" in GROWING[name] else 1
    x = np.ones((1,) * rank, np.float32)
    session = session_of(GROWING[name], 1_000_000)
    assert session.run({"x": x, "s": np.array([100, 100])})["y"].shape == (100, 100)
    for side in (2_000, 1_000_000):
        with pytest.raises(RunError, match="max_memory leaves"):
            session.run({"x": x, "s": np.array([side, side])})


def test_weights_of_more_bins_than_there_is_memory():
    graph = "(int64 bins, float low, float high) => (float[a, b] y) <int64 n = {16}, int64 rate = {8000}> "
    session = session_of(graph + "{ y = MelWeightMatrix(bins, n, rate, low, high) }", 1_000_000)
    feeds = {"low": np.array(0, np.float32), "high": np.array(4000, np.float32)}
    assert session.run({"bins": np.array(4), **feeds})["y"].shape == (9, 4)
    with pytest.raises(RunError, match="max_memory leaves"):
        session.run({"bins": np.array(2**40), **feeds})


def test_results_that_broadcast():
    session = session_of("(float[n, 1] x) => (float[n, n] y) { t = Transpose(x)  y = Add(x, t) }", 100_000)
    assert session.run({"x": np.ones((100, 1), np.float32)})["y"].shape == (100, 100)
    with pytest.raises(RunError, match="max_memory leaves") as error:
        session.run({"x": np.ones((1_000, 1), np.float32)})
    assert error.value.op == "Binary"


CONV = "(float[1, 32, 128, 128] x) => (float[1, 32, 128, 128] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w) }"
UP = "(float[1, 32, 128, 128] x) => (float[1, 32, 256, 256] y) { y = ConvTranspose<strides = [2, 2]>(x, w) }"


@pytest.mark.parametrize(
    ("graph", "kernel", "output", "phases"),
    [(CONV, 3, 32 * 128 * 128, 0), (UP, 2, 32 * 256 * 256, 32 * 256 * 256)],
)
def test_a_limit_includes_the_buffers_of_a_convolution(graph, kernel, output, phases):
    """A step may hold images in blocks of channels, and a transposed convolution holds the results of all phases."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {graph}')
    weights = np.ones((32, 32, kernel, kernel), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    plan, x = compiler.compile(model), np.ones((1, 32, 128, 128), np.float32)
    [step] = compiler.load(plan, threads=1).prepared().steps
    images = x.nbytes + output * FLOATS
    needed = images + phases * FLOATS + (images if step.kernel.endswith("within the step") else 0)
    assert step.alive_bytes == needed
    session = compiler.load(plan, threads=1, max_memory=needed)
    assert session.run({"x": x}, copy=True)["y"].nbytes == output * FLOATS
    with pytest.raises(RunError, match="max_memory leaves"):
        compiler.load(plan, threads=1, max_memory=needed - 1).run({"x": x}, copy=True)


LOOP = """
(float[n] x, int64 count, bool go) => (float[n] y, float[turns, n] all) {
    y, all = Loop(count, go, x) <body = turn (int64 i, bool more, float[n] v) => (bool on, float[n] w, float[n] out)
        { on = Identity(more)  w = Neg(v)  out = Exp(w) }>
}
"""


def test_turns_of_a_loop():
    feeds = {"x": np.ones(100, np.float32), "go": np.array(True)}
    session = session_of(LOOP, 40 * 100 * FLOATS)
    assert session.run({**feeds, "count": np.array(10)})["all"].shape == (10, 100)
    with pytest.raises(RunError, match="max_memory leaves"):
        session.run({**feeds, "count": np.array(1000)})


def test_constants_do_not_count():
    graph = "(float[1] x) => (float[4] y, float[2, 2] z) <float[4] w = {1, 2, 3, 4}, int64[2] s = {2, 2}> "
    session = session_of(graph + "{ z = Reshape(w, s)  y = Add(x, w) }", (1 + 4) * FLOATS)
    assert session.run({"x": np.ones(1, np.float32)})["y"].tolist() == [2, 3, 4, 5]


def test_negative_bounds_are_refused():
    with pytest.raises(ValueError, match="-1"):
        Options(max_memory=-1)


ITERATIONS = {
    "collected": """(int64 count, bool go, int64[1] s) => (float[turns, n] all) {
        all = Loop(count, go) <body = turn (int64 i, bool more) => (bool on, float[n] out)
            { on = Identity(more)  out = ConstantOfShape(s) }> }""",
    "in a sequence": """(int64 count, bool go, int64[1] s) => (float[turns, n] all) { none = SequenceEmpty()
        items = Loop(count, go, none) <body = turn (int64 i, bool more, seq(float[n]) v) => (bool on, seq(float[n]) w)
            { on = Identity(more)  x = ConstantOfShape(s)  w = SequenceInsert(v, x) }>
        all = ConcatFromSequence<axis = 0, new_axis = 1>(items) }""",
    "carried": """(int64 count, bool go, int64[1] s) => (float[n] all) { x = ConstantOfShape(s)
        all = Loop(count, go, x) <body = turn (int64 i, bool more, float[n] v) => (bool on, float[m] w)
            { on = Identity(more)  w = Concat<axis = 0>(v, v) }> }""",
    "scanned": """(int64[1] s, float[turns, 1] x) => (float[turns, n] all) {
        all = Scan<num_scan_inputs = 1, body = turn (float[1] v) => (float[n] out) { out = Expand(v, s) }>(x) }""",
}
PEAK = """
import sys
import numpy as np
import compiler
from tests.process_memory import memory
session = compiler.load(compiler.Plan.load(sys.argv[1]), threads=1)
every = {"count": np.array(64), "go": np.array(True), "s": np.array([4 << 20]), "x": np.ones((64, 1), np.float32)}
before = memory("VmHWM")
try:
    session.run({info.name: every[info.name] for info in session.inputs})
except compiler.RunError as error:
    print(error)
print((memory("VmHWM") - before) >> 20)
"""


@pytest.mark.parametrize("name", ITERATIONS)
def test_the_peak_of_iterations(name, tmp_path):
    """With items of 16 MiB and a limit of 100 MiB, the process's additional memory is below the limit."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {ITERATIONS[name]}')
    compiler.compile(model, Options(max_memory=100 << 20, optimize=False)).save(tmp_path / "loop.plan")
    command = [sys.executable, "-c", PEAK, str(tmp_path / "loop.plan")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    error, mebibytes = done.stdout.strip().rsplit("\n", 1)
    assert "max_memory leaves" in error
    assert int(mebibytes) <= 105


@pytest.mark.parametrize(
    ("compiled", "loaded", "left"),
    [
        (None, 3999, 3999),
        (3999, None, 3999),
        (3999, 1 << 40, 3999),
        (1 << 40, np.int64(3999), 3999),
        (1 << 40, 1 << 40, None),
    ],
)
def test_the_lower_of_two_bounds_counts(compiled, loaded, left):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {CHAIN}')
    plan = compiler.compile(model, Options(max_memory=compiled, optimize=False))
    session, x = compiler.load(plan, max_memory=loaded), {"x": np.ones(1000, np.float32)}
    if left is None:
        assert session.run(x)["y"].shape == (1000,)
        return
    with pytest.raises(RunError, match=f"max_memory leaves {left}"):
        session.run(x)


def test_a_bound_at_load_is_a_number_of_bytes():
    plan = compiler.compile(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {CHAIN}'))
    for wrong, error in (("1G", TypeError), (1e6, TypeError), (-1, ValueError), (10**18, ValueError)):
        with pytest.raises(error, match="max_memory: expected a whole number from 0"):
            compiler.load(plan, max_memory=wrong)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory there is")
@pytest.mark.parametrize("bound", [None, 1 << 50])
def test_a_value_that_no_memory_holds_is_refused_before_it_is_made(bound):
    """The system would promise it, and end the process that fills it."""
    graph = "(float[4] x) => (float[a, b] y) <int64[2] s = {1099511627776, 4}> { y = Expand(x, s) }"
    with pytest.raises(RunError, match=r"there is no memory for a tensor of shape|max_memory leaves") as error:
        session_of(graph, bound).run({"x": np.ones(4, np.float32)})
    assert error.value.kind == "memory"
