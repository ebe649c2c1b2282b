"""Sessions that share a prepared plan."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from tests.state.models import cache_plan, rows

ROOT = Path(__file__).parent.parent


def product(scale: float, depth: int = 4, width: int = 8) -> compiler.Plan:
    """A product with constant weights that count up from zero."""
    shapes = f"float[n, {depth}] x) => (float[n, {width}] y"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g ({shapes}) {{ y = MatMul(x, w) }}')
    weights = np.arange(depth * width, dtype=np.float32).reshape(depth, width) * np.float32(scale)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return compiler.compile(model)


def test_a_clone_computes_the_same_with_threads_of_its_own() -> None:
    session = compiler.load(product(0.5), threads=1)
    clone, same = session.clone(threads=3), session.clone()
    del session
    assert [clone.threads, same.threads] == [3, 1]
    x = np.ones((2, 4), np.float32)
    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(lambda each: each.run({"x": x})["y"], [clone, same] * 20)]
    expected = x @ (np.arange(32, dtype=np.float32).reshape(4, 8) / 2)
    assert all((result == expected).all() for result in results)
    assert (same.inputs, same.device, same.prepared()) == (clone.inputs, clone.device, clone.prepared())


@pytest.mark.parametrize(
    ("threads", "error"), [(0, ValueError), (1025, ValueError), ("2", TypeError), (True, TypeError)]
)
def test_a_wrong_number_of_threads_is_refused(threads: object, error: type[Exception]) -> None:
    session = compiler.load(product(1), threads=1)
    with pytest.raises(error, match="threads"):
        session.clone(threads)  # type: ignore[arg-type]


def test_a_clone_keeps_the_limit_of_memory() -> None:
    session = compiler.load(product(1), threads=1, max_memory=64)
    for each in (session, session.clone(2)):
        each.run({"x": np.ones((1, 4), np.float32)})
        with pytest.raises(compiler.RunError, match="max_memory"):
            each.run({"x": np.ones((9, 4), np.float32)})


def rewritten(path: Path) -> None:
    """Saves another plan under the same name."""
    product(2).save(path)


def overwritten(path: Path) -> None:
    """Writes the bytes of another plan into the file, which no session has open."""
    path.write_bytes(product(2).data)


@pytest.mark.parametrize("change", [rewritten, overwritten])
def test_a_changed_file_is_loaded_again(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "product.plan"
    product(1).save(path)
    x = np.ones((1, 4), np.float32)
    first = compiler.load(path, threads=1)
    before = first.run({"x": x})["y"]
    if change is overwritten:
        del first
    change(path)
    assert (compiler.load(path, threads=1).run({"x": x})["y"] == 2 * before).all()
    if change is rewritten:
        assert (first.run({"x": x})["y"] == before).all()


GROWTH = """
import sys
device = sys.argv[2]
import compiler
from tests.process_memory import memory

options = [{}, {"threads": 2}, {"memory": "low"}, {"max_memory": 1 << 30}]
sessions, sizes = [], [memory("VmRSS")]
for each in options:
    sessions.append(compiler.load(sys.argv[1], device, **each))
    sizes.append(memory("VmRSS"))
clones = [sessions[0].clone(1) for _ in range(3)]
sizes.append(memory("VmRSS"))
print(*(after - before for before, after in zip(sizes, sizes[1:])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts the memory")
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_sessions_of_one_file_hold_packed_weights_once(tmp_path: Path, device: str) -> None:
    """On a GPU, they hold the copies of the weights once. The memory of an emulated GPU is that of the process."""
    if device == "emulator":
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    path = tmp_path / "product.plan"
    product(1e-6, 2048, 4096).save(path)
    command = [sys.executable, "-c", GROWTH, str(path), device]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    first, second, low, limited, clones = [int(size) for size in found.split()]
    weights = 4 * 2048 * 4096
    assert max(second, limited, clones) < weights / 8 < weights <= first
    assert low >= weights, "other packed weights"


@pytest.mark.parametrize("limits", [(64, None), (None, 64)])
def test_sessions_of_one_file_have_limits_of_their_own(tmp_path: Path, limits: tuple[int | None, ...]) -> None:
    path = tmp_path / "cache.plan"
    cache_plan().save(path)
    sessions = [compiler.load(path, threads=1, max_memory=limit) for limit in limits]
    for limit, session in zip(limits, sessions, strict=True):
        expected = pytest.raises(compiler.RunError, match="max_memory") if limit else nullcontext()
        with expected:
            session.run(rows(0), state=session.new_state())
        assert session.prepared().state[0].in_place
