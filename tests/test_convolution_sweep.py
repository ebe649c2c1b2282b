"""The sweep over forms of convolutions: the forms that the bundle lists, the timed ones, and the page."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_bundle import ROOT, tool

SHAPE = tool("gpu.shapes").Shape
LAYERS = [SHAPE(1, 512, 512, 7, 3), SHAPE(1, 256, 64, 56, 1), SHAPE(32, 32, 32, 14, 3, groups=32)]
"""The shapes of a layer with split sums, of a product, and of a depthwise convolution."""


@pytest.fixture(scope="module")
def models() -> list[dict[str, Any]]:
    """The models of the bundle for `LAYERS`."""
    return list(tool("gpu.gather").of_convolutions(LAYERS))


def test_the_bundle_lists_the_forms_that_can_compute_a_shape(models: list[dict[str, Any]]) -> None:
    split, product, depthwise = models
    assert split["chosen"] == "medium:32" and product["chosen"] == "product" and depthwise["chosen"] == "direct"
    kinds = [{form.partition(":")[0] for form in model["forms"]} for model in models]
    assert kinds[0] >= {"direct", "large", "medium", "small"} and kinds[1] == kinds[0] | {"product"}
    for model in models:
        assert 3 < model["forms"][model["chosen"]] < 1000, "microseconds of a launch and more"


def test_a_form_is_timed_with_up_to_twice_its_parts(models: list[dict[str, Any]]) -> None:
    sweep = tool("gpu.convolutions")
    timed = sweep.forms({"forms": {"direct": 1.0, "large:9": 1.0, "small:2": 1.0}})
    assert timed == ["direct", "large:1", "large:4", "large:2", "large:8", "small:1", "small:2"]
    for model in models:
        found = sweep.forms(model)
        assert len(found) == len(set(found)) and {"direct", "small:1", "medium:1", "large:1"} <= set(found)
        assert ("product" in found) == (model["chosen"] == "product")


def test_the_page_of_forms(tmp_path: Path) -> None:
    sweep, report, shapes = tool("gpu.convolutions"), tool("gpu.report"), tool("gpu.shapes").SHAPES
    part = report.Part("Convolutions", sweep.lines)
    whole = report.Report(tmp_path, "tune", [], [part])
    named = [shape.name for shape in shapes]
    chosen = {name: "product" if "k1" in name else "medium:32" for name in named}
    facts = {"times": 20.0, "estimates": 16.0, "cudnn_f32": 5.0, "cudnn_tf32": 2.5}
    figures = {figure: dict.fromkeys(named, value) for figure, value in facts.items()}
    whole.put(part, {"name": sweep.CHOSEN, "verdict": "equal", "chosen": chosen, **figures})
    whole.put(part, {"name": "small:4", "verdict": "equal", "times": dict.fromkeys(named, 10.0)})
    wrong = {"times": dict.fromkeys(named, 1.0), "wrong": dict.fromkeys(named, "it differs")}
    whole.put(part, {"name": "direct", "verdict": "different", **wrong})
    whole.end(part, 1.0)
    assert tool("gpu.counters").hottest(tool("gpu.process").Setting(tmp_path, "cuda", 0, tmp_path)) == []
    page = whole.page.read_text()
    row = r"^\| 1×512→512 7² k3 \| ✗ \| medium:32 \| 20 \| 1\.25 \| small:4 \| 10 \| 2 \| 5 \| 2\.5 \| 4 \|"
    assert re.search(row, page, re.MULTILINE), page
    assert f"- the chosen forms: 2.000 of the fastest form's time, {len(named)} shapes" in page
    for kind in ("product", "medium"):
        number = sum(form.startswith(kind) for form in chosen.values())
        assert f"- {kind}: 1.250 of its estimate, {number} shapes\n" in page
        assert f"- {kind}: 4.000 of cuDNN's time, {number} shapes\n" in page


REHEARSAL = """
import json, sys, types
sys.path[:0] = [{tools!r}, {root!r}]
import torch
import compiler
from gpu import convolutions, gather
from gpu.process import Setting
from gpu.results import guarded
from gpu.shapes import Shape
from gpu.trace import Event

SHAPES = [Shape(1, 64, 33, 6, 3), Shape(1, 16, 20, 7, 1), Shape(2, 20, 20, 9, 4, 2, is_transposed=True, is_line=True)]
MODELS = {{model["name"]: model for model in gather.of_convolutions(SHAPES)}}

def traced(torch, run, runs):
    for _ in range(runs):
        run()
    is_ours = "device_outputs" in run.keywords
    is_product = is_ours and run.args[0]["w"].shape[-1] == 1 and ":" not in sys.argv[1]
    name = kernel or ("cublas" if is_product else "conv_small_f32")
    return [Event("kernel", name, 0.0, 12.0), Event("kernel", "conv_finish_f32", 0.0, 3.0)] * runs

convolutions.SHAPES = SHAPES
convolutions.traced, convolutions.torch_on = traced, lambda device: torch
READ = lambda _, __, name: MODELS[name]
convolutions.files = types.SimpleNamespace(names=lambda *_: list(MODELS), read=READ)
torch.Tensor.cuda = lambda self: self
torch.from_dlpack = lambda value: torch.from_numpy(scale * value.numpy())
setting = Setting(None, "emulator", float("inf"), None)
for kernel, scale in (("", 1), ("conv_large_f32", 1), ("", 1.01)):
    *partial, last = guarded(convolutions.results(sys.argv[1], setting, 0))
    print(json.dumps({{"names": convolutions.names(setting), "partial": len(partial), **last}}))
"""
"""Runs the sweep three times on the emulator, with stand-ins for PyTorch's CUDA and its profiler.

In the second sweep, the trace shows another kernel. In the third sweep, results differ from cuDNN's.
"""


@pytest.mark.skipif(
    importlib.util.find_spec("compiler._runtime_emulator") is None or importlib.util.find_spec("torch") is None,
    reason="the emulator is not built, or PyTorch is not installed",
)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("small:4", ["1×64→33 6² k3"]),
        ("product", ["1×16→20 7² k1"]),
        ("", ["1×64→33 6² k3", "1×16→20 7² k1", "transposed 2×20→20 9 k4 s2"]),
    ],
)
def test_a_form_is_timed_and_compared_with_pytorch(name: str, shapes: list[str]) -> None:
    chosen = tool("gpu.convolutions").CHOSEN
    source = REHEARSAL.format(tools=str(ROOT / "tools"), root=str(ROOT))
    done = subprocess.run([sys.executable, "-c", source, name or chosen], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    good, other, wrong = map(json.loads, done.stdout.splitlines())
    assert (good["verdict"], good["times"]) == ("equal", dict.fromkeys(shapes, 15.0))
    assert good["partial"] >= len(shapes) and good["note"] == f"{len(shapes)} shapes"
    assert good["names"][0] == chosen and {"product", "direct", "small:1", "large:2"} <= set(good["names"])
    if not name:
        assert good["cudnn_f32"] == good["cudnn_tf32"] == good["times"]
        assert good["launched"][shapes[0]] == ["conv_small_f32", "conv_finish_f32"]
    assert other["verdict"] == wrong["verdict"] == "different"
    assert list(other["wrong"]) == list(wrong["wrong"]) == shapes
    assert "the plan launched conv_large_f32, conv_finish_f32 instead of " in other["note"]
    assert "0.01 from cuDNN's" in wrong["note"]
