"""The sweep over forms of convolutions: its copy of the planner, the fit of the limits, and the page."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler.bench.expectation import expected_steps
from tests.gpu_bundle import ROOT, tool

RUST = ROOT / "runtime/plan/src/gpu/conv"
LIMITS = RUST / "constants.rs"
SHAPES, FORMS, FIT = tool("gpu.shapes"), tool("gpu.forms"), tool("gpu.fit")
PRESENT = FORMS.Constants()


def constants_of_rust() -> dict[str, int]:
    """The limits in `constants.rs` by name."""
    found = re.findall(r"^pub\(super\) const (\w+): usize = (\d+)(?: << (\d+))?;$", LIMITS.read_text(), re.MULTILINE)
    return {name.lower(): int(number) << int(shift or 0) for name, number, shift in found}


def numbers_of_rust(file: str) -> dict[str, float]:
    """The constants of a file of Rust by name, and the rates of its tiles by the names of the tiles."""
    text = (RUST / file).read_text()
    constants = re.findall(r"^(?:pub\(super\) )?const (\w+): (?:f64|usize) = ([\d.e]+);$", text, re.MULTILINE)
    tiles = re.findall(r'name: "(\w+)",[^}]*?rate: ([\d.]+)', text)
    return {name: float(value) for name, value in [*constants, *tiles]}


def test_the_twin_has_the_constants_of_rust() -> None:
    limits = constants_of_rust()
    assert limits.pop("multiprocessors") == FORMS.MULTIPROCESSORS
    assert limits == asdict(PRESENT)
    times = numbers_of_rust("constants.rs")
    assert (times["LAUNCH"], times["FINISH"], times["BYTES"]) == (FORMS.LAUNCH, FORMS.FINISH, FORMS.BYTES)
    product, direct, tiles = (numbers_of_rust(f"{form}.rs") for form in ("product", "direct", "tiles"))
    assert (product["RATE"], product["TERM"], product["SPLIT"]) == (FORMS.RATES["product"], FORMS.TERM, FORMS.SPLIT)
    assert (direct["RATE"], direct["START"]) == (FORMS.RATES["direct"], FORMS.DIRECT_START)
    assert {tile: tiles[tile] for tile in FORMS.TILES} == {tile: FORMS.RATES[tile] for tile in FORMS.TILES}
    assert (tiles["DEPTH"], tiles["START"]) == (FORMS.DEPTH, FORMS.START)


def test_the_twin_chooses_what_the_tests_of_rust_expect() -> None:
    row = re.compile(r'\(\[(\d+), (\d+), (\d+), (\d+)\], (\d+), (\d+), "(\w+)(?::(\d+))?"\)')
    rows = row.findall((RUST / "planner.rs").read_text())
    assert len(rows) >= 10
    for batch, channels, outputs, groups, size, kernel, kind, parts in rows:
        shape = SHAPES.Shape(*map(int, (batch, channels, outputs, size, kernel)), groups=int(groups))
        assert FORMS.form_of(shape, PRESENT) == FORMS.Form(kind, int(parts or 1)), shape


def drawn(seed: int) -> Any:
    """A shape of a convolution with few elements."""
    generator = random.Random(seed)
    groups = generator.choice([1, 1, 2, 3])
    is_transposed = generator.random() < 0.4
    stride = generator.choice([1, 1, 2, 3])
    kernel = generator.choice([1, 1, 2, 3, 5])
    return SHAPES.Shape(
        batch=generator.choice([1, 1, 4]),
        channels=groups * generator.choice([1, 12, 16, 100]),
        outputs=groups * generator.choice([1, 15, 16, 40, 130]),
        size=generator.choice([7, 20, 33]),
        kernel=max(kernel, stride) if is_transposed else kernel,
        stride=stride,
        groups=groups,
        dilation=1 if is_transposed else generator.choice([1, 1, 2]),
        is_transposed=is_transposed,
        is_line=generator.random() < 0.3,
    )


@pytest.mark.parametrize("shape", [SHAPES.SHAPES[2], *map(drawn, range(5))], ids=lambda shape: shape.name)
def test_the_twin_estimates_as_a_plan_does(shape: Any) -> None:
    plan = compiler.compile(tool("gpu.gather").convolution(shape))
    given = {"x": np.zeros(shape.input, np.float32), "w": np.zeros(shape.weights, np.float32)}
    (step,) = [step for step in expected_steps(plan, given) if step.op.startswith("Conv")]
    assert [each.form for each in step.alternatives if each.chosen] == [FORMS.form_of(shape, PRESENT).name]
    for each in step.alternatives:
        kind, _, parts = each.form.partition(":")
        assert each.microseconds == pytest.approx(FORMS.cost(shape, FORMS.Form(kind, int(parts or 1)))), each


@pytest.mark.parametrize("shape", [*SHAPES.SHAPES, *map(drawn, range(80))], ids=lambda shape: shape.name)
def test_the_twin_chooses_as_a_plan_does(shape: Any) -> None:
    plan = compiler.compile(tool("gpu.gather").convolution(shape))
    given = {"x": np.zeros(shape.input, np.float32), "w": np.zeros(shape.weights, np.float32)}
    (step,) = [step for step in expected_steps(plan, given) if step.op.startswith("Conv")]
    form = FORMS.form_of(shape, PRESENT)
    if form.kind == "product":
        assert step.products and not step.kernels
        return
    kernels = {f"conv/conv_{form.kind}_f32": 1} | ({"conv/conv_finish_f32": 1} if form.parts > 1 else {})
    assert (step.products, dict(step.kernels)) == ([], kernels)


def test_every_timed_form_fits_its_shape() -> None:
    for shape in SHAPES.SHAPES:
        forms = FIT.forms(shape)
        assert len(forms) == len(set(forms)) and FORMS.DIRECT in forms
        assert {form.kind for form in forms} >= set(FORMS.TILES)
        assert (FORMS.PRODUCT in forms) == (FORMS.form_of(shape, PRESENT) == FORMS.PRODUCT)
        # Every number of parts that a candidate chooses has a time, or is between two that have.
        times = {form.name: 1.0 for form in forms}
        for enough, part in itertools.product(FIT.ENOUGH, FIT.PART):
            form = FORMS.tiles(shape, replace(PRESENT, enough=enough, part=part))
            assert math.isfinite(FIT.time_of(form, times)), (shape, form)


def made(best: Any, slower: float = 2.0) -> Mapping[Any, Mapping[str, float]]:
    """Times for which some constants choose the fastest form of every shape, and other forms take longer."""
    found = {}
    for shape in SHAPES.SHAPES:
        form = FORMS.form_of(shape, best)
        times = {each.name: 10.0 * slower for each in FIT.forms(shape)}
        near = [number for number in sorted(FIT.TIMED) if name_of(form.kind, number) in times]
        around = [n for n in near if n <= form.parts][-1:] + [n for n in near if n >= form.parts][:1]
        found[shape] = times | {name_of(form.kind, number): 10.0 for number in around} | {form.name: 10.0}
    return found


def name_of(kind: str, number: int) -> str:
    """The name of a form."""
    name: str = FORMS.Form(kind, number).name
    return name


@pytest.mark.parametrize(
    "best",
    [{}, {"enough": 512}, {"part": 64, "most_parts": 16}, {"few": 4, "short": 16}, {"enough": 128, "many": 1 << 22}],
)
def test_the_fit_finds_the_constants_of_times(best: dict[str, int]) -> None:
    wanted = replace(PRESENT, **best)
    fit = FIT.fitted(made(wanted), PRESENT)
    assert fit.shapes == len(SHAPES.SHAPES)
    assert fit.after == pytest.approx(1.0, abs=2e-3)
    assert fit.before > 1.02 if best else fit.constants == PRESENT and fit.before == 1.0
    for shape in SHAPES.SHAPES:
        chosen, meant = FORMS.form_of(shape, fit.constants), FORMS.form_of(shape, wanted)
        assert chosen == meant or made(wanted)[shape].get(chosen.name, 10.0) == 10.0, shape


def test_noise_moves_no_constant() -> None:
    generator = random.Random(0)
    times = {shape: {form.name: 1 + 1e-4 * generator.random() for form in FIT.forms(shape)} for shape in SHAPES.SHAPES}
    assert FIT.fitted(times, PRESENT).constants == PRESENT


def test_a_form_without_a_time_is_not_chosen() -> None:
    times = made(replace(PRESENT, enough=512))
    assert FIT.fitted({}, PRESENT) is None
    assert FIT.fitted({shape: {"direct": 1.0} for shape in times}, PRESENT).shapes < 10
    cut = {
        shape: {name: time for name, time in found.items() if ":" not in name or name.endswith(":1")}
        for shape, found in times.items()
    }
    fit = FIT.fitted(cut, PRESENT)
    assert 0 < fit.shapes < len(times) and fit.after <= fit.before


def test_times_between_timed_parts() -> None:
    times = {"small:1": 100.0, "small:4": 25.0, "direct": 7.0}
    assert FIT.time_of(FORMS.Form("small", 2), times) == pytest.approx(50.0)
    assert FIT.time_of(FORMS.Form("small", 4), times) == 25.0
    assert FIT.time_of(FORMS.DIRECT, times) == 7.0
    for form in (FORMS.Form("small", 8), FORMS.Form("large", 1), FORMS.PRODUCT):
        assert FIT.time_of(form, times) == math.inf


def test_the_lines_for_rust_are_those_of_rust() -> None:
    assert set(FIT.source(PRESENT)) <= set(LIMITS.read_text().splitlines())


def test_the_page_of_forms_and_constants(tmp_path: Path) -> None:
    sweep, constants, report = tool("gpu.convolutions"), tool("gpu.constants"), tool("gpu.report")
    best = replace(PRESENT, enough=512)
    times = {shape.name: found for shape, found in made(best).items()}
    parts = [report.Part("Convolutions", sweep.lines), report.Part("New constants", constants.lines)]
    whole = report.Report(tmp_path, "tune", [], parts)
    chosen = {shape.name: made(best)[shape].get(FORMS.form_of(shape, PRESENT).name, 10.0) for shape in SHAPES.SHAPES}
    facts = {figure: dict.fromkeys(chosen, 5.0) for figure in ("cudnn_f32", "cudnn_tf32")}
    whole.put(parts[0], {"name": sweep.CHOSEN, "verdict": "equal", "times": chosen, "launched": {"a": ["b"]}, **facts})
    for form in sweep.FORMS:
        of_form = {shape: found[form.name] for shape, found in times.items() if form.name in found}
        whole.put(parts[0], {"name": form.name, "verdict": "equal", "times": of_form})
    whole.end(parts[0], 1.0)
    setting = tool("gpu.process").Setting(tmp_path, "cuda", 0, tmp_path)
    assert tool("gpu.counters").hottest(setting) == [], "these are no kernels of plans"
    (found,) = constants.results(constants.NAME, setting, 0)
    assert found["before"] > found["after"] == pytest.approx(1.0, abs=2e-3)
    assert found["constants"]["enough"] > PRESENT.enough
    whole.put(parts[1], {"name": constants.NAME, "verdict": "equal", **found})
    whole.end(parts[1], 1.0)
    page = whole.page.read_text()
    assert re.search(
        r"^\| 1×512→512 7² k3 \| ✓ \| medium:32 \| 20 \| \w+:\d+ \| 10 \| 2 \| 5 \| 5 \| 4 \|", page, re.MULTILINE
    )
    assert re.search(r"^- product: 2\.00 of cuDNN's time, \d+ shapes$", page, re.MULTILINE), page
    assert f"const ENOUGH: usize = {found['constants']['enough']};\npub(super) const PART: usize = " in page
    assert re.search(r"^- 1×512→512 7² k3: medium:32 → small:", page, re.MULTILINE)


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
PLANS = {{shape.name: compiler.compile(gather.convolution(shape)).data for shape in SHAPES}}

def traced(torch, run, runs):
    for _ in range(runs):
        run()
    is_ours = "device_outputs" in run.keywords
    is_product = is_ours and run.args[0]["w"].shape[-1] == 1 and ":" not in sys.argv[1]
    name = kernel or ("cublas" if is_product else "conv_small_f32")
    return [Event("kernel", name, 0.0, 12.0), Event("kernel", "conv_finish_f32", 0.0, 3.0)] * runs

convolutions.SHAPES = SHAPES
convolutions.traced, convolutions.torch_on = traced, lambda device: torch
NAMES, READ = lambda *_: list(PLANS), lambda _, __, name: {{"plan": PLANS[name]}}
convolutions.files = types.SimpleNamespace(names=NAMES, read=READ)
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
    assert good["names"][:4] == [chosen, "product", "direct", "small:1"]
    if not name:
        assert good["cudnn_f32"] == good["cudnn_tf32"] == good["times"]
        assert good["launched"][shapes[0]] == ["conv_small_f32", "conv_finish_f32"]
    assert other["verdict"] == wrong["verdict"] == "different"
    assert list(other["wrong"]) == list(wrong["wrong"]) == shapes
    assert "the plan launched conv_large_f32, conv_finish_f32 instead of " in other["note"]
    assert "0.01 from cuDNN's" in wrong["note"]
