"""Sessions of plan files give the results and the errors of sessions of plans in memory."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler


@pytest.fixture
def plan() -> compiler.Plan:
    """A plan with constants of several types."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        m (float[2, 8] x, int64[3] i) => (float[2, 8] y, int64[3] j, bool[2] k, string[2] l) {
            y = MatMul (x, w)  j = Mul (i, n)  k = Identity (b)  l = Identity (s)
        }""")
    for name, array in {
        "w": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8),
        "n": np.array([1, -2, 2**40]),
        "b": np.array([True, False]),
    }.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    model.graph.initializer.append(onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [2], [b"one", b"two"]))
    return compiler.compile(model)


X = {"x": np.arange(16, dtype=np.float32).reshape(2, 8), "i": np.array([1, 2, 3])}


def test_a_file_runs_as_its_plan_does(plan: compiler.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "m.plan")
    expected = compiler.load(plan).run(X)
    for path in (tmp_path / "m.plan", str(tmp_path / "m.plan")):
        session = compiler.load(path)
        (tmp_path / "m.plan").rename(tmp_path / "other.plan")  # nothing is read later
        found = session.run(X)
        (tmp_path / "other.plan").rename(tmp_path / "m.plan")
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


def test_a_pipe_is_read_once(plan: compiler.Plan, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(plan.data,), daemon=True)
    writer.start()
    found = compiler.load(pipe).run(X)
    writer.join()
    np.testing.assert_array_equal(found["y"], compiler.load(plan).run(X)["y"])


@pytest.fixture
def large() -> compiler.Plan:
    """A plan with constants of several widths that stay in its file, and one that is too small for that."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        m (float[2, 400] x, int64[3] i)
        => (float[2, 300] y, float[3, 99] r, double[30001] d, bool[70001] k, float[5] v) {
            y = MatMul (x, w)  r = Gather (table, i)  d = Identity (wide)  k = Identity (bits)  v = Identity (few)
        }""")
    random = np.random.default_rng(0)
    for name, array in {
        "bits": random.random(70001) < 0.5,
        "w": random.standard_normal((400, 300), np.float32),
        "few": np.arange(5, dtype=np.float32),
        "table": random.standard_normal((1001, 99), np.float32),
        "wide": random.standard_normal(30001),
    }.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return compiler.compile(model)


LARGE_X = {"x": np.ones((2, 400), np.float32), "i": np.array([0, 1000, 7])}


def test_large_constants_stay_in_the_file(large: compiler.Plan, tmp_path: Path) -> None:
    """A session reads mapped constants correctly. A caller may change results without changing a constant."""
    file = tmp_path / "m.plan"
    large.save(file)
    expected = compiler.load(large).run(LARGE_X)
    session = compiler.load(file)
    large.save(file)  # another file in its place: the session has the first
    for _ in range(2):
        found = session.run(LARGE_X)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
            found[name][...] = 0
    assert file.read_bytes() == large.data


def test_the_constants_of_a_file_are_aligned(large: compiler.Plan) -> None:
    start = 8 + int.from_bytes(large.data[:8], "little")
    header = json.loads(large.data[8:start])
    widths = {"BOOL": 1, "F32": 4, "F64": 8, "I64": 8}
    tensors = [header[name] for name in header if name != "__metadata__"]
    assert len(tensors) == 5
    for tensor in tensors:
        begin, end = tensor["data_offsets"]
        assert (start + begin) % (64 if (end - begin) % 64 == 0 else widths[tensor["dtype"]]) == 0


def test_a_large_constant_that_is_damaged_is_refused(large: compiler.Plan, tmp_path: Path) -> None:
    file = tmp_path / "m.plan"
    start = 8 + int.from_bytes(large.data[:8], "little")
    for at in (start, start + 200_000, len(large.data) - 1):
        file.write_bytes(flipped(large.data, at))
        with pytest.raises(compiler.PlanError, match="checksum"):
            compiler.load(file)


def test_the_checksum_of_a_large_file_comes_before_other_errors(large: compiler.Plan, tmp_path: Path) -> None:
    """Another thread computes it, while the damaged plan cannot be prepared."""
    file, name = tmp_path / "m.plan", rb"{\"dtype\":\""
    assert len(large.data) > 256 << 10
    at = large.data.index(name) + len(name)
    file.write_bytes(flipped(large.data, at))
    with pytest.raises(compiler.PlanError, match="checksum"):
        compiler.load(file)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: b"", "the file is empty: copy it or compile it again"),
        (lambda data: data[:7], "the file is cut short: copy it or compile it again"),
        (lambda data: data[:-1], "the file is cut short or damaged: copy it or compile it again"),
        (lambda data: data + b"0", "the file is cut short or damaged: copy it or compile it again"),
        (lambda data: data[:100], "the file is cut short or damaged: copy it or compile it again"),
        (lambda data: b"\xff" * 8 + data[8:], "too large"),
        (lambda data: flipped(data, len(data) - 1), "checksum"),
        (lambda data: data.replace(b'"candle-plan"', b'"candle-plam"', 1), "format"),
        (lambda data: data.replace(b'"plan_version":"1"', b'"plan_version":"9"', 1), "version 9"),
        (lambda data: b"\x08\x0a" + data, "ONNX model"),
    ],
    ids=["empty", "few", "short", "long", "cut", "header", "flipped", "format", "version", "model"],
)
def test_files_that_are_damaged_are_refused_alike(plan: compiler.Plan, tmp_path: Path, damage, said: str) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "m.plan"
    file.write_bytes(damage(plan.data))
    with pytest.raises(compiler.PlanError, match=said) as opened:
        compiler.load(file)
    with pytest.raises(compiler.PlanError) as loaded:
        compiler.Plan.load(file)
    assert str(opened.value) == str(loaded.value)
    assert str(file) in str(opened.value)


@pytest.mark.parametrize("path", ["absent.plan", ".", ""])
def test_what_is_no_file_is_an_error_of_the_system(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError):
        compiler.load(path)
