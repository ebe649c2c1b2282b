"""The work of a plan on an absent GPU, and the time that the GPU's published limits allow for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.bench.expectation import GPUS, GpuLimits, GpuStep, Product, expected_steps
from compiler.cli import main

DIGITS = Path(__file__).parent.parent / "models/digits.onnx"

PRODUCT = """<ir_version: 10, opset_import: ["" : 20]>
m (float[n, 64] x, float[64, 32] w) => (float[n, 32] y, int64[2] s) {
    z = MatMul (x, w)
    s = Shape (z)
    y = Sigmoid (z)
}"""


def steps_of(text: str, **inputs: np.ndarray) -> list[GpuStep]:
    return expected_steps(compiler.compile(onnx.parser.parse_model(text)), inputs)


def test_steps_tell_of_library_calls_kernels_and_copies() -> None:
    steps = steps_of(PRODUCT, x=np.ones((8, 64), np.float32), w=np.ones((64, 32), np.float32))
    by_op = {step.op: step for step in steps if step.op != "Transfer"}
    product = by_op["MatMul"]
    assert product.products == [Product("f32", 8, 32, 64, 1, 1)]
    assert str(product.products[0]) == "cuBLAS 8×64×32 f32"
    assert product.operations == 2 * 8 * 32 * 64 and product.bytes == 4 * (8 * 64 + 64 * 32 + 8 * 32)
    assert product.precision == "f32" and product.layout == "rows"
    assert by_op["Shape"].host == "nature" and by_op["Shape"].launches == 0
    copies = [step for step in steps if step.op in ("Transfer", "Outputs")]
    assert all(step.added for step in copies)
    assert sum(step.uploaded for step in copies) == 4 * (8 * 64 + 64 * 32)
    assert sum(step.downloaded for step in copies) == 4 * 8 * 32 + 64  # with the record of faults
    assert sum(step.waits for step in steps) == 1
    assert sum(step.launches for step in steps) >= 1


def test_a_step_in_a_loop_counts_every_time() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    m (float[4] x) => (float[4] y) <int64 times = {5}, bool going = {1}> {
        y = Loop (times, going, x) <body = b (int64 i, bool c, float[4] before) => (bool still, float[4] after) {
            still = Identity (c)
            after = Exp (before)
        }>
    }"""
    (step,) = [step for step in steps_of(text, x=np.zeros(4, np.float32)) if step.depth == 1 and step.launches]
    assert step.calls == 5 and step.launches == 5


LIMITS = GpuLimits(
    "none", float64=1e9, float64_products=2e9, float32=1e10, float16=1e12, memory=1e9, bus=1e8, source=""
)
STEP = GpuStep(0, "MatMul", "", 0, False, "rows", None, 1, {"gemm/gemm_f32": 1}, [], 0, 0, 0, 10**7, 10**3)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 1e-3),
        ({"bytes": 10**7}, 1e-2),
        ({"kernels": {"gemm/gemm_f64": 1}}, 1e-2),
        ({"kernels": {"reduce/reduce_sum_f64": 1, "copy/copy_8": 1}}, 1e-2),
        ({"kernels": {"program/program_f64": 1}, "products": [Product("f64", 1, 1, 1, 1, 1)]}, 5e-3),
        ({"kernels": {}, "products": [Product(kind, 1, 1, 1, 1, 1) for kind in ("f16_f32", "f32")]}, 1e-5),
        ({"kernels": {"qlinear/qlinear_pack": 1, "qlinear/qlinear_tiles": 1}}, 2.5e-4),
        ({"kernels": {"integer/integer_product": 1}}, 1e-3),
        ({"kernels": {}, "products": [Product("f16_f32", 1, 1, 1, 1, 1)]}, 1e-5),
        ({"uploaded": 10**6, "downloaded": 10**6}, 1e-3 + 2e-2),
        ({"host": "nature"}, 0.0),
    ],
)
def test_the_least_time_is_that_of_arithmetic_or_memory_and_of_copies(changes: dict, seconds: float) -> None:
    assert LIMITS.seconds(replace(STEP, **changes)) == pytest.approx(seconds)


def test_each_gpu_names_the_source_of_its_limits() -> None:
    assert [gpu.name for gpu in GPUS] == ["H100 SXM", "H200 SXM", "RTX 4090"]
    assert all("NVIDIA" in gpu.source for gpu in GPUS)
    assert [gpu.float64_products / gpu.float64 for gpu in GPUS] == pytest.approx([2, 2, 1], rel=0.01)


def test_kernels_that_multiply_codes_are_those_that_the_runtime_has() -> None:
    """Only the module `qlinear` contains `__dp4a`."""
    kernels = Path(__file__).parent.parent / "runtime/device/kernels"
    assert [file.stem for file in sorted(kernels.glob("*.cu*")) if "__dp4a" in file.read_text()] == ["qlinear"]


def run(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_command_prints_an_expectation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", str(DIGITS), "--prepared", "--device", "cuda") == 0
    printed = capsys.readouterr().out
    assert "conv/" in printed and "copy from the host" in printed
    assert "H100 SXM: about " in printed and "An estimate, not a measurement" in printed
    assert run("inspect", str(DIGITS), "--prepared", "--device", "cuda", "--dim", "batch=4", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] and set(shown["least_seconds"]) == {gpu.name for gpu in GPUS}
    assert sum(step["launches"] for step in shown["steps"]) > 0


CONVOLUTION = """<ir_version: 10, opset_import: ["" : 20]>
m (float[n, 128, 28, 28] x) => (float[n, 96, 28, 28] z) {
    y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    z = Add (y, y)
}"""


@pytest.fixture
def convolution(tmp_path: Path) -> str:
    """The file of a plan with a convolution whose batch is unknown."""
    model = onnx.parser.parse_model(CONVOLUTION)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((96, 128, 3, 3), np.float32), "w"))
    compiler.compile(model).save(tmp_path / "convolution.plan")
    return str(tmp_path / "convolution.plan")


def test_the_command_prints_the_forms_of_a_convolution(convolution: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--prepared", "--device", "cuda", "--alternatives")
    assert run("inspect", convolution, *options, "--size", "n=1") == 0
    *rows, fastest, limits = capsys.readouterr().out.splitlines()
    assert fastest.startswith("µs on H100: ") and limits.startswith("limit: ")
    (chosen,) = [row for row in rows if "chosen" in row.split()]
    assert chosen.split()[:3] == ["0", "Conv", "small:4"]
    (direct,) = [row for row in rows if " direct " in row]
    assert "many outputs in a group" in direct
    assert run("inspect", convolution, *options, "--size", "n=32", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    (forms,) = [step["alternatives"] for step in shown["steps"] if step["alternatives"]]
    within = {form["form"]: form["microseconds"] for form in forms if form["limit"] is None}
    assert [form["form"] for form in forms if form["chosen"]] == [min(within, key=within.__getitem__)] == ["large:1"]


def test_a_request_replaces_the_choice(convolution: str) -> None:
    environment = {**os.environ, "CANDLE_PLAN_CONV": "medium:2"}
    options = ("--prepared", "--device", "cuda", "--alternatives", "--size", "n=1", "--json")
    command = [sys.executable, "-m", "compiler", "inspect", convolution, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (step,) = [step for step in json.loads(done.stdout)["steps"] if step["alternatives"]]
    limits = {form["form"]: form["limit"] for form in step["alternatives"]}
    assert limits.pop("medium:2") is None and set(limits.values()) == {"another form is requested"}
    assert {"conv/conv_medium_f32", "conv/conv_finish_f32"} <= set(step["kernels"])


def test_a_plan_without_a_choice_lists_no_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    compiler.compile(onnx.parser.parse_model(PRODUCT)).save(tmp_path / "product.plan")
    options = ("--prepared", "--device", "cuda", "--alternatives", "--size", "n=8")
    assert run("inspect", str(tmp_path / "product.plan"), *options) == 0
    assert capsys.readouterr().out == "no step has several forms\n"
    assert run("inspect", str(tmp_path / "product.plan"), "--alternatives", "--device", "cuda") == 2


def test_the_device_is_for_prepared_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", str(DIGITS), "--device", "cuda") == 2
    assert "--device needs --prepared" in capsys.readouterr().err
