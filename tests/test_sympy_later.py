"""Computations with symbolic dimensions import sympy late or not at all, and get what sympy gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx_ir as ir
import pytest

from compiler.ir import shape_library
from compiler.ir.shape_library import broadcast, scaled
from compiler.ir.sympy_later import LATER, StandIn

ROOT = Path(__file__).parent.parent

PROGRAMS = {
    "nothing of it is left in sys.modules": """
import sys
import compiler.pipeline, onnx_ir
assert not set({later}) & sys.modules.keys()
assert type(onnx_ir._core.sympy).__name__ == "StandIn"
""",
    "dimensions are computed with": """
import compiler.pipeline, onnx_ir
twice = onnx_ir.SymbolicDim("n") * 2
import sympy
assert type(sympy).__name__ == "module"
assert (twice + onnx_ir.SymbolicDim("n")).value == "3*n"
assert onnx_ir.SymbolicDim("max(n, 3)").evaluate(dict(n=2)) == 3
assert onnx_ir.SymbolicDim(sympy.Symbol("m") + 1).value == "m + 1"
""",
    "shapes are inferred": """
import compiler.pipeline, onnx_ir, onnx_shape_inference
context = onnx_shape_inference.ShapeInferenceContext({{"": 20}})
assert context.simplify_dim(onnx_ir.SymbolicDim("n + n")).value == "2*n"
import onnx_shape_inference._constraints as constraints
assert constraints.sympy.Add(1, 2) == 3
""",
    "who imports sympy first keeps it": """
import sympy, compiler.pipeline, onnx_ir
assert onnx_ir._core.sympy is sympy
""",
    "who imports onnx_ir first keeps it": """
import onnx_ir, compiler.pipeline, sympy
assert onnx_ir._core.sympy is sympy
""",
    "many threads at once": """
import threading
import compiler.pipeline, onnx_ir
found, gate = [], threading.Barrier(8)
def add():
    gate.wait()
    found.append((onnx_ir.SymbolicDim("n") + 1).value)
threads = [threading.Thread(target=add) for _ in range(8)]
[each.start() for each in threads], [each.join() for each in threads]
assert found == ["n + 1"] * 8, found
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_a_process_of_its_own(name: str) -> None:
    code = PROGRAMS[name].format(later=LATER)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_stand_in_has_what_the_module_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import colorsys

    stand_in = StandIn("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", stand_in)
    assert stand_in.hls_to_rgb(0.0, 0.5, 0.0) == colorsys.hls_to_rgb(0.0, 0.5, 0.0)
    assert type(sys.modules["colorsys"]) is type(sys)
    with pytest.raises(AttributeError, match="no_such_name"):
        stand_in.no_such_name  # noqa: B018


def test_the_modules_are_those_of_the_packages() -> None:
    """A new version of a package that names them otherwise would import sympy at once."""
    import importlib.util

    assert [name for name in LATER if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize("name", ["n", "2*n", "n + 1", "max", "Min(3, n)"])
@pytest.mark.parametrize("scale", [0.5, 1, 1.5, 2, 3])
def test_scaled_symbols_are_those_of_sympy(name: str, scale: float) -> None:
    found, expected = (scale_of(ir.SymbolicDim(name), scale) for scale_of in (scaled, shape_library._scale_dim))
    assert (type(found), str(found)) == (type(expected), str(expected))


@pytest.mark.parametrize(("one", "other"), [("n", "n"), ("2*n", "2*n"), ("n", "m"), (None, "n"), ("n", None), ("n", 1)])
def test_broadcast_symbols_are_those_of_sympy(one: str | None, other: str | int | None) -> None:
    dims = [each if isinstance(each, int) else ir.SymbolicDim(each) for each in (one, other)]
    assert broadcast(*dims) == shape_library._broadcast_dim(*dims)
