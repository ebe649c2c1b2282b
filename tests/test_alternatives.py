"""The forms of products and of convolutions with weights of a run, in `candlec inspect --prepared --alternatives`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.runtime.prepared import Prepared, PreparedStep
from tests.cli.command import run

REGISTERS, ADVANCE = "codes converted in registers", "codes converted once for all rows"
FLOATS, INTEGERS = "as float32, if all sums are exact", "as int32"
"""Forms of matrix products."""


def model(text: str, **constants: np.ndarray) -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "candle.plan": 1]> m {text}'
    )
    for name, array in constants.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def step(text: str, op: str, **constants: np.ndarray) -> PreparedStep:
    """The only step of this op in the prepared plan of a model."""
    found: Prepared = compiler.load(compiler.compile(model(text, **constants)), threads=1).prepared()
    (only,) = [step for step in found.steps if step.op == op]
    return only


def sorted_forms(found: PreparedStep) -> list[str]:
    """The names of the alternatives, the fastest first."""
    assert all(each.time > 0 and not each.in_blocks for each in found.alternatives)
    return [each.form for each in sorted(found.alternatives, key=lambda each: each.time)]


def codes(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


LOW_BIT = {"w": codes(60, 3, 16), "s": np.ones((60, 3), np.float32)}
"""Weights of 4 bits, 60 × 80."""
ONE_INT8: dict[str, np.ndarray] = {"one": np.array(1, np.float32), "zero": np.array(0, np.int8)}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("1", [REGISTERS, ADVANCE]),
        ("6", [REGISTERS, ADVANCE]),
        ("7", [ADVANCE, REGISTERS]),
        ("n", [REGISTERS, ADVANCE]),
    ],
)
def test_products_of_weights_of_few_bits(rows: str, expected: list[str]) -> None:
    assert sorted_forms(low_bit_step(rows, 1)) == expected


def low_bit_step(rows: str, level: int) -> PreparedStep:
    """A product at an accuracy level of onnxruntime's MatMulNBits."""
    attributes = f"K = 80, N = 60, bits = 4, block_size = 32, accuracy_level = {level}"
    node = f"com.microsoft.MatMulNBits <{attributes}> (x, w, s)"
    return step(f"(float[{rows}, 80] x) => (float[{rows}, 60] y) {{ y = {node} }}", "MatMulNBits", **LOW_BIT)


@pytest.mark.parametrize(("rows", "first"), [("1", "registers"), ("6", "registers"), ("40", "advance")])
def test_products_that_may_round_their_left_operand(rows: str, first: str) -> None:
    found = low_bit_step(rows, 4)
    forms = sorted_forms(found)
    assert sorted(forms)[:2] == [REGISTERS, ADVANCE]
    names = {"registers": "codes unpacked in registers", "advance": "codes unpacked once for all rows"}
    assert forms[0].startswith("rows in 8 bits, " + names[first])
    assert found.kernel == "codes of 4 bits in blocks of 32, rows in 8 bits where that is faster"


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "of a run"])
@pytest.mark.parametrize("depth", [8, 80])
def test_products_of_codes(constant: bool, depth: int) -> None:
    w = "" if constant else f", int8[{depth}, 60] w"
    text = f"(uint8[n, {depth}] x{w}) => (int32[n, 60] y) {{ y = MatMulInteger (x, w) }}"
    given = {"w": codes(depth, 60, dtype=np.int8)} if constant else {}
    found = step(text, "MatMulInteger", **given)
    forms = sorted_forms(found)
    assert all(form.startswith("int8, ") for form in forms)
    assert forms
    assert found.kernel == (forms[0] if constant else None)
    assert "int8, AMX" not in forms or (forms[0] == "int8, AMX") == (depth >= 32)


def test_products_of_codes_with_codes_as_result() -> None:
    nodes = "q = QLinearMatMul (x, one, zero, w, one, zero, one, zero)"
    text = f"(int8[n, 80] x) => (int8[n, 60] q) {{ {nodes} }}"
    found = step(text, "QLinearMatMul", w=codes(80, 60, dtype=np.int8), **ONE_INT8)
    assert found.kernel == sorted_forms(found)[0]


@pytest.mark.parametrize(
    "text",
    [
        "(uint8[80] x, int8[80, 60] w) => (int32[60] y) { y = MatMulInteger (x, w) }",
        "(uint8[3, 80] x, int8[2, 80, 60] w) => (int32[2, 3, 60] y) { y = MatMulInteger (x, w) }",
        "(uint8[3, 80] x, int8[80, 60] w, uint8[3, 1] z) => (int32[3, 60] y) { y = MatMulInteger (x, w, z) }",
    ],
    ids=["a vector", "a stack", "zero points of rows"],
)
def test_products_of_differences(text: str) -> None:
    found = step(text, "MatMulInteger")
    assert found.kernel is None
    assert sorted_forms(found) == [FLOATS, INTEGERS]


@pytest.mark.parametrize(
    "text",
    [
        "(uint8[3, n] x, int8[n, 60] w) => (int32[3, 60] y) { y = MatMulInteger (x, w) }",
        "(uint8[3, 80] x, int8[80, 60] w, uint8[n] z) => (int32[3, 60] y) { y = MatMulInteger (x, w, z) }",
    ],
    ids=["depth", "zero points"],
)
def test_products_of_codes_of_unknown_sizes_have_no_forms(text: str) -> None:
    assert step(text, "MatMulInteger").alternatives == []


@pytest.mark.parametrize(("size", "transposed"), [(28, False), (28, True), (2, False)])
def test_convolutions_with_weights_of_a_run(size: int, transposed: bool) -> None:
    node = f"{'ConvTranspose' if transposed else 'Conv'} <pads = [1, 1, 1, 1]> (x, w)"
    image, weights = f"float[1, 32, {size}, {size}]", ", float[32, 32, 3, 3] w"
    text = f"({image} x{weights}) => ({image} y) {{ y = {node} }}"
    found = step(text, node.split()[0])
    forms = sorted_forms(found)
    assert found.kernel is None
    if transposed:
        assert all(form.startswith("one convolution: ") for form in forms)
    else:
        assert {"direct, in rows", "direct, in blocks within the step"} <= {*forms}
        assert ("as a matrix product, in rows" in forms) == (size == 2)
    constant = np.ones((32, 32, 3, 3), np.float32)
    fixed = step(text.replace(weights, ""), node.split()[0], w=constant)
    in_rows = {each.form: each.time for each in fixed.alternatives if not each.in_blocks}
    assert {each.form: each.time for each in found.alternatives} == in_rows


@pytest.mark.parametrize(("dtype", "groups"), [("int8", 1), ("int8", 32), ("uint8", 32)])
def test_quantized_convolutions_with_weights_of_a_run(dtype: str, groups: int) -> None:
    attributes = f"pads = [1, 1, 1, 1], group = {groups}, low = 0, high = 100"
    node = f"candle.plan.QLinearConv <{attributes}> (x, w, one, zero, zero, zero)"
    image, weights = f"{dtype}[1, 28, 28, 32]", f", {dtype}[32, {32 // groups}, 3, 3] w"
    text = f"({image} x{weights}) => ({image} y) {{ y = {node} }}"
    given = {"one": np.array(1, np.float32), "zero": np.zeros((), dtype)}
    found = step(text, "QLinearConv", **given)
    forms = sorted_forms(found)
    assert found.kernel is None
    assert ("int8, depthwise" in forms) == (groups == 32)
    constant = codes(32, 32 // groups, 3, 3, dtype=np.dtype(dtype).type)
    fixed = step(text.replace(weights, ""), "QLinearConv", w=constant, **given)
    assert fixed.kernel in [each.form for each in fixed.alternatives]
    if dtype == "int8":
        assert found.alternatives == fixed.alternatives


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "of a run"])
def test_convolutions_of_integers(constant: bool) -> None:
    w = "" if constant else ", int8[8, 4, 3, 3] w"
    text = f"(uint8[n, 4, 9, 9] x{w}) => (int32[n, 8, 7, 7] y) {{ y = ConvInteger (x, w) }}"
    found = step(text, "ConvInteger", **({"w": codes(8, 4, 3, 3, dtype=np.int8)} if constant else {}))
    assert sorted_forms(found) == ["direct, in rows, as float32", INTEGERS]
    assert found.kernel == ("direct, in rows, as float32" if constant else None)


def test_a_convolution_in_double_precision_has_no_forms() -> None:
    text = "(double[1, 2, 9, 9] x, double[3, 2, 3, 3] w) => (double[1, 3, 7, 7] y) { y = Conv (x, w) }"
    assert step(text, "Conv").alternatives == []


def test_the_command_shows_the_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """(float[7, 80] x, uint8[3, 80] a, int8[80, 60] b, float[1, 4, 9, 9] i, float[8, 4, 3, 3] v)
        => (float[7, 60] y, int32[3, 60] z, float[1, 8, 7, 7] c) {
            y = com.microsoft.MatMulNBits <K = 80, N = 60, bits = 4, block_size = 32> (x, w, s)
            z = MatMulInteger (a, b)
            c = Conv (i, v)
        }"""
    path = tmp_path / "products.plan"
    compiler.compile(model(text, **LOW_BIT)).save(path)
    assert run("inspect", str(path), "--prepared", "--alternatives") == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {op: [line for line in lines if f" {op} " in line] for op in ("MatMulNBits", "MatMulInteger", "Conv")}
    assert [form in line for form, line in zip((ADVANCE, REGISTERS), shown["MatMulNBits"], strict=True)] == [True] * 2
    assert shown["MatMulInteger"]
    assert all("int8, " in line for line in shown["MatMulInteger"])
    assert any("direct, in rows" in line for line in shown["Conv"])
    assert run("inspect", str(path), "--prepared", "--alternatives", "--json") == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    listed = {found["op"]: {each["form"] for each in found["alternatives"]} for found in steps}
    assert listed["MatMulNBits"] == {REGISTERS, ADVANCE}
    assert all(form.startswith("int8, ") for form in listed["MatMulInteger"])
    assert listed["MatMulInteger"]
    assert "direct, in rows" in listed["Conv"]
