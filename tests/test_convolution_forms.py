"""The forms that `CANDLE_PLAN_CONV` sets for convolutions on a device: equal results, or an error with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler

pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")

MODEL = """<ir_version: 10, opset_import: ["" : 20]>
g ({type}[{x}] x, {type}[{w}] w) => ({type}[a, b, c, d] y) {{ y = {op} }}"""
CONVOLUTIONS = {
    "plain": ("float", "2,20,9,8", "40,20,3,3", "Conv <strides = [2, 1], pads = [1, 1, 1, 1]> (x, w)"),
    "points": ("float", "1,40,6,6", "20,40,1,1", "Conv (x, w)"),
    "groups": ("float", "1,32,7,7", "64,8,3,3", "Conv <group = 4, pads = [1, 1, 1, 1]> (x, w)"),
    "transposed": ("float", "1,24,5,5", "24,9,4,4", "ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)"),
    "double": ("double", "1,20,6,6", "33,20,3,3", "Conv (x, w)"),
}
"""The elements' type, the shapes of the images and the weights, and the operator."""

CHILD = """
import json, sys
from pathlib import Path
import numpy as np
import compiler
from compiler import _runtime_emulator
found = {}
for file in sorted(Path(sys.argv[1]).glob("*.plan")):
    plan, given = compiler.Plan(file.read_bytes()), dict(np.load(file.with_suffix(".npz")))
    found[file.stem] = {"kernels": [], "error": "", "kind": ""}
    try:
        np.save(file.with_suffix(".npy"), compiler.load(plan, device="emulator").run(given)["y"])
        steps = json.loads(_runtime_emulator.Session.dry_run(plan.data).commands(given))
        launched = [kernel for step in steps for kernel in step["kernels"]]
        found[file.stem]["kernels"] = [kernel for kernel in launched if kernel.startswith("conv/")]
    except compiler.RunError as error:
        found[file.stem] |= {"error": str(error), "kind": error.kind}
print(json.dumps(found))
"""

FORMS = {
    "direct": {"conv/conv_direct"},
    "small": {"conv/conv_small"},
    "small:3": {"conv/conv_small", "conv/conv_finish"},
    "medium:1": {"conv/conv_medium"},
    "medium:7": {"conv/conv_medium", "conv/conv_finish"},
    "large": {"conv/conv_large"},
    "large:2": {"conv/conv_large", "conv/conv_finish"},
}
"""The kernels of each form, without the element type at the end of their names."""


def launches(folder: Path, form: str) -> dict[str, Any]:
    """The kernels and the error of each plan of a folder, which a separate process runs in a form."""
    environment = {**os.environ, "CANDLE_PLAN_CONV": form}
    done = subprocess.run([sys.executable, "-c", CHILD, str(folder)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of plans with inputs, and the processor's results."""
    folder, results = tmp_path_factory.mktemp("plans"), {}
    generator = np.random.default_rng(0)
    for name, (kind, x, w, op) in CONVOLUTIONS.items():
        plan = compiler.compile(onnx.parser.parse_model(MODEL.format(type=kind, x=x, w=w, op=op)))
        shapes = {"x": x, "w": w}
        given: dict[str, Any] = {
            key: generator.standard_normal([int(size) for size in shape.split(",")]).astype(
                np.float64 if kind == "double" else np.float32
            )
            for key, shape in shapes.items()
        }
        plan.save(folder / f"{name}.plan")
        np.savez(folder / f"{name}.npz", **given)
        results[name] = compiler.load(plan).run(given)["y"]
    return folder, results


def check_near(folder: Path, name: str, results: dict[str, Any]) -> None:
    """Compares the result of a form with the processor's."""
    found = np.load(folder / f"{name}.npy")
    np.testing.assert_allclose(found, results[name], rtol=1e-4, atol=1e-4 if found.dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_computes_the_same(form: str, expected: tuple[Path, dict[str, Any]]) -> None:
    folder, results = expected
    for name, found in launches(folder, form).items():
        if name == "double" and form.startswith("large"):
            assert f'CANDLE_PLAN_CONV is "{form}", and there is no such tile of float64' in found["error"]
            continue
        assert found["error"] == ""
        assert {kernel.rpartition("_")[0] for kernel in found["kernels"]} == FORMS[form], (name, found["kernels"])
        check_near(folder, name, results)


def test_a_product_is_for_points(expected: tuple[Path, dict[str, Any]]) -> None:
    folder, results = expected
    found = launches(folder, "product")
    assert found["points"] == {"kernels": [], "error": "", "kind": ""}
    check_near(folder, "points", results)
    del found["points"]
    for each in found.values():
        assert 'CANDLE_PLAN_CONV is "product", which is for windows of one element' in each["error"], each
        assert each["kind"] == "setting"


@pytest.mark.parametrize("form", ["huge", "small:0", "direct:2"])
def test_the_step_reports_an_unknown_form(form: str, expected: tuple[Path, dict[str, Any]]) -> None:
    for found in launches(expected[0], form).values():
        assert f'CANDLE_PLAN_CONV is "{form}"; it may be ' in found["error"] and "medium or small" in found["error"]
        assert found["error"].startswith("step ") and " from Conv" in found["error"]
        assert found["kind"] == "setting"
