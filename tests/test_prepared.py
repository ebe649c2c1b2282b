"""The description of a session's steps before a run: kernels, layouts, reused storage, and values in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.accuracy.random_inputs import random_inputs
from compiler.runtime.prepared import Prepared, PreparedStep
from compiler.runtime.session import Memory
from tests.cli.command import run


def prepared(text: str, **weights: tuple[int, ...]) -> Prepared:
    """The prepared steps of a model in ONNX's text form, with weights of these shapes."""
    return compiler.load(compiler.compile(model(text, **weights)), threads=1).prepared()


def model(text: str, **weights: tuple[int, ...]) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    generator = np.random.default_rng(0)
    for name, shape in weights.items():
        array = generator.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def ops(found: Prepared) -> list[str]:
    return [step.op for step in found.steps]


CONVS = """(float[1, 3, 32, 32] x) => (float[1, 32, 32, 32] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, v)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1]> (b, w)
    y = Add (c, b)
}"""


def test_convolutions_show_form_layout_and_addition() -> None:
    found = prepared(CONVS, v=(32, 3, 3, 3), w=(32, 32, 3, 3))
    first, second, _ = found.steps
    assert ops(found) == ["Conv", "Conv", "Reorder"]
    assert [step.added for step in found.steps] == [False, False, True]
    assert first.kernel == "direct, from rows to blocks"
    assert first.program == "Relu"
    assert second.kernel in {f"{form}, in blocks" for form in ("direct", "Winograd F(2, 3)", "Winograd F(4, 3)")}
    assert second.program == "Add(·, x3)"
    layouts = [(step.inputs[0], step.outputs[0]) for step in found.steps]
    assert [[value.layout for value in pair if value] for pair in layouts] == [
        ["rows", "blocks"],
        ["blocks", "blocks"],
        ["blocks", "rows"],
    ]
    assert first.packed_bytes >= 4 * 32 * 3 * 9
    assert found.packed_bytes == sum(step.packed_bytes for step in found.steps)


@pytest.mark.parametrize(("channels", "block"), [(24, 8), (40, 8), (32, 16), (64, 16)])
def test_the_size_of_blocks_follows_the_channels(channels: int, block: int) -> None:
    image = f"float[1, {channels}, 32, 32]"
    nodes = "a = Conv <pads = [1, 1, 1, 1]> (x, w) y = Conv <pads = [1, 1, 1, 1]> (a, w)"
    found = prepared(f"({image} x) => ({image} y) {{ {nodes} }}", w=(channels, channels, 3, 3))
    assert found.block == (16 if found.isa == "avx512" else block)


def test_constants_that_are_packed_are_not_held_twice() -> None:
    twice = "(float[4, 8] x) => (float[4, 6] y, float[8, 6] z) { y = MatMul (x, w) z = Add (w, w) }"
    shared = "(float[4, 8] x) => (float[4, 6] y, float[4, 6] z) { y = MatMul (x, w) e = Exp (x) z = MatMul (e, w) }"
    for text, held in ((twice, 4 * 8 * 6), (shared, 0)):
        made = model(text, w=(8, 6))
        session = compiler.load(compiler.compile(made, compiler.Options(optimize=False)), threads=1)
        assert held <= session.prepared().constant_bytes < held + 4 * 8 * 6
        inputs = random_inputs(session.inputs, {})
        weights = onnx.numpy_helper.to_array(made.graph.initializer[0])
        found = session.run(inputs)
        np.testing.assert_allclose(found["y"], inputs["x"] @ weights, rtol=1e-5, atol=1e-5)
        expected = weights + weights if held else np.exp(inputs["x"]) @ weights
        np.testing.assert_allclose(found["z"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "weights", "expected"),
    [
        ("(float[4, 8] x) => (float[4, 6] y) { y = MatMul (x, w) }", {"w": (8, 6)}, ["B prepacked"]),
        ("(float[4, 8] x, float[8, 6] w) => (float[4, 6] y) { y = MatMul (x, w) }", {}, [None]),
        ("(float[1, 8, 4] x) => (float[1, 8, 4] y) { y = Conv <group = 8> (x, w) }", {"w": (8, 1, 1)}, None),
        (
            "(float[1, 2, 4, 4] x) => (float[1, 3, 8, 8] y) { y = ConvTranspose <strides = [2, 2]> (x, w) }",
            {"w": (2, 3, 2, 2)},
            ["one convolution: direct, in rows"],
        ),
        (
            "(float[5, 1, 8] x) => (float[5, 1, 1, 4] y) { y = LSTM <hidden_size = 4> (x, w, r) }",
            {"w": (1, 16, 8), "r": (1, 16, 4)},
            ["gates finished in registers"],
        ),
    ],
    ids=["prepacked", "not prepacked", "depthwise", "transposed", "recurrent"],
)
def test_kernels_are_named(text: str, weights: dict[str, tuple[int, ...]], expected: list[str | None] | None) -> None:
    steps = [step for step in prepared(text, **weights).steps if step.packed_bytes or step.op == "MatMul"]
    assert steps
    for step, kernel in zip(steps, expected or [steps[0].kernel], strict=True):
        assert step.kernel == kernel
        assert bool(step.packed_bytes) == bool(weights)
        assert step.packed_bytes >= (4 * sum(map(np.prod, weights.values())) if weights else 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "text",
    [
        "({half}[4, 80] x{w}) => ({half}[4, 60] y) {{ y = MatMul (x, w) }}",
        "({half}[4, 80] x{w}) => ({half}[4, 60] y) {{ y = Gemm (x, w) }}",
        "(float[4, 80] x{w}) => (float[4, 60] y) {{ v = Cast <to = 1> (w) y = MatMul (x, v) }}",
        "(float[4, 80] x{w}) => (float[4, 60] y) {{ v = Cast <to = 1> (w) y = Gemm (x, v) }}",
    ],
    ids=["MatMul", "Gemm", "widened MatMul", "widened Gemm"],
)
def test_weights_of_16_bits_stay_so_and_change_no_bit(text: str, dtype: str) -> None:
    generator, half = np.random.default_rng(0), np.dtype(getattr(ml_dtypes, dtype, dtype))
    weights = (generator.standard_normal((80, 60)) * 2.0**-20).astype(half)
    x = generator.standard_normal((4, 80)).astype(half if "(float[" not in text else np.float32)
    constant = model(text.format(half=dtype, w=""))
    constant.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    session = compiler.load(compiler.compile(constant), threads=1)
    (step,) = session.prepared().steps
    assert step.kernel == f"B prepacked as {dtype}"
    assert 2 * 80 * 60 <= step.packed_bytes < 2 * 80 * (60 + 48)
    given = compiler.load(compiler.compile(model(text.format(half=dtype, w=f", {dtype}[80, 60] w"))), threads=1)
    expected = given.run({"x": x, "w": weights})["y"]
    assert session.run({"x": x})["y"].tobytes() == expected.tobytes()


def test_weights_of_16_bits_are_widened_for_many_rows_unless_memory_is_low() -> None:
    made = model("(float16[9, 80] x) => (float16[9, 60] y) { y = MatMul (x, w) }")
    weights = np.random.default_rng(0).standard_normal((80, 60)).astype(np.float16)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    plan = compiler.compile(made)
    full, low = (compiler.load(plan, threads=1, memory=memory) for memory in ("full", "low"))
    assert [session.prepared().steps[0].kernel for session in (full, low)] == ["B prepacked", "B prepacked as float16"]
    inputs = random_inputs(plan.inputs, {})
    assert full.run(inputs)["y"].tobytes() == low.run(inputs)["y"].tobytes()


def test_low_memory_packs_no_transformed_copies() -> None:
    made = model(
        "(float[1, 64, 32, 32] x) => (float[1, 64, 32, 32] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
        w=(64, 64, 3, 3),
    )
    plan = compiler.compile(made)
    full, low = (compiler.load(plan, threads=1, memory=memory) for memory in ("full", "low"))
    kernels = [" ".join(filter(None, (step.kernel for step in session.prepared().steps))) for session in (full, low)]
    assert ["Winograd" in names for names in kernels] == [True, False]
    assert low.prepared().packed_bytes == 4 * 64 * 64 * 9 < full.prepared().packed_bytes
    inputs = random_inputs(plan.inputs, {})
    found = [session.run(inputs)["y"] for session in (full, low)]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="memory"):
        compiler.load(plan, memory="some")  # type: ignore[arg-type]


def test_a_program_is_shown_and_takes_over_what_dies() -> None:
    found = prepared("(float[3, 4] x) => (float[3, 4] y) { a = Softmax (x) b = Mul (a, a) y = Tanh (b) }")
    last = found.steps[-1]
    assert (last.op, last.program) == ("Elementwise", "x0, Mul(·, x0), Tanh")
    assert [value.taken for value in last.inputs if value] == [True]
    assert [value.taken for value in found.steps[0].inputs if value] == [True]
    assert found.steps[0].dies == ["%0:x"]


def test_unknown_sizes_are_not_shown() -> None:
    found = prepared("(float[4, 8] x, int64[2] s) => (float[o, p] y) { a = Exp (x) b = Reshape (a, s) y = Sqrt (b) }")
    assert [step.alive_bytes for step in found.steps] == [16 + 4 * 32, None, None]
    assert (found.peak_bytes, found.unknown_steps) == (16 + 4 * 32, 2)


def test_steps_of_blocks_follow_the_step_that_runs_them() -> None:
    found = prepared("""(bool c, float[4] x) => (float[4] y) {
        y = If (c) <then_branch = t () => (float[4] p) { p = Exp (x) },
                    else_branch = e () => (float[4] q) { q = Sin (x) }>
    }""")
    assert [(step.op, step.depth) for step in found.steps] == [("If", 0), ("Unary", 1), ("Unary", 1)]
    assert (found.steps[0].alive_bytes, found.unknown_steps) == (None, 1)


def test_operations_are_those_of_the_formulas() -> None:
    """The padding of the last block of channels does not count."""
    text = """(float[1, 20, 16, 16] x, float[n, 4] z) => (y, t) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu (a) y = Conv <pads = [1, 1, 1, 1]> (b, w) t = MatMul (z, z)
    }"""
    found = compiler.load(compiler.compile(model(text, w=(20, 20, 3, 3))), threads=1).prepared()
    one = 2 * 20 * 20 * 9 * 16 * 16
    convolutions = [step.operations for step in found.steps if step.op == "Conv"]
    assert convolutions == [one, one]
    assert [step.operations for step in found.steps if step.op == "MatMul"] == [None]
    assert all(step.operations == 0 for step in found.steps if step.op not in ("Conv", "MatMul"))
    assert found.operations == 2 * one


def test_the_former_name_of_unknown_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model("(float[n] x) => (float[n] y) { a = Exp (x) y = Softmax (a) }")
    found = compiler.load(compiler.compile(made), threads=1).prepared()
    with pytest.warns(DeprecationWarning, match=r"Prepared\.untold is deprecated: use unknown_steps"):
        assert found.untold == found.unknown_steps == 2
    onnx.save(made, tmp_path / "m.onnx")
    assert run("inspect", str(tmp_path / "m.onnx"), "--prepared", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["untold"] == printed["unknown_steps"] == 2


def test_a_profile_tells_the_kernel() -> None:
    made = model("(float[4, 8] x) => (float[4, 6] y) { a = MatMul (x, w) y = Relu (a) }", w=(8, 6))
    session = compiler.load(compiler.compile(made), threads=1)
    (step,) = session.profile(random_inputs(session.inputs, {}), 1)
    assert (step.kernel, step.program) == ("B prepacked", "Relu")


def test_the_command_shows_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plan = tmp_path / "m.onnx", tmp_path / "m.plan"
    onnx.save(model(CONVS, v=(32, 3, 3, 3), w=(32, 32, 3, 3)), file)
    compiler.compile(file).save(plan)
    for path in (file, plan):
        assert run("inspect", str(path), "--prepared") == 0
        shown = capsys.readouterr().out
        assert "from rows to blocks; Relu" in shown
        assert re.search(r"^ *\+1 +Reorder +%\d+▦", shown, re.MULTILINE)
        assert run("inspect", str(path), "--prepared", "--json") == 0
        data = json.loads(capsys.readouterr().out)
        assert [step["op"] for step in data["steps"]] == ["Conv", "Conv", "Reorder"]
        assert data["steps"][0].keys() == PreparedStep.__dataclass_fields__.keys()


@pytest.mark.parametrize("arguments", [["m.onnx", "--dim", "n=1"], ["m.plan", "--prepared", "--dim", "n=1"]])
def test_sizes_are_for_models_that_are_prepared(arguments: list[str], tmp_path: Path) -> None:
    onnx.save(model("(float[n] x) => (float[n] y) { y = Exp (x) }"), tmp_path / "m.onnx")
    compiler.compile(tmp_path / "m.onnx").save(tmp_path / "m.plan")
    assert run("inspect", str(tmp_path / arguments[0]), *arguments[1:]) == 2


def test_alternatives_of_a_convolution_hold_its_kernel() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 17]> g (float[1, 32, 28, 28] x) => (float[1, 32, 28, 28] y) '
        "<float[32, 32, 3, 3] w> { y = Conv <pads = [1, 1, 1, 1]> (x, w) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((32, 32, 3, 3), np.float32), "w"))
    steps = [step for step in compiler.load(compiler.compile(model)).prepared().steps if step.op == "Conv"]
    (conv,) = steps
    forms = {each.form: each for each in conv.alternatives}
    assert conv.kernel in forms
    assert {"direct, in rows", "direct, in blocks"} < set(forms)
    assert all(each.time > 0 for each in conv.alternatives)
    within = {form.removesuffix(" within the step"): each.time for form, each in forms.items() if "within" in form}
    assert within
    assert all(time > forms[form].time for form, time in within.items()), "moving images takes time"


@pytest.mark.parametrize("memory", ["full", "low"])
@pytest.mark.parametrize("outputs", [8, 24, 64])
def test_the_cheapest_alternative_is_chosen(outputs: int, memory: Memory) -> None:
    text = "(float[1, 48, 28, 80] x) => (float[1, n, h, w] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }"
    plan = compiler.compile(model(text, w=(outputs, 48, 3, 3)))
    (conv,) = [step for step in compiler.load(plan, memory=memory).prepared().steps if step.op == "Conv"]
    (in_blocks,) = [each.in_blocks for each in conv.alternatives if each.form == conv.kernel]
    cheapest = min((each for each in conv.alternatives if each.in_blocks == in_blocks), key=lambda each: each.time)
    assert conv.kernel == cheapest.form
    assert any("Winograd" in each.form for each in conv.alternatives) == (memory == "full")


def depthwise_and_point(size: int) -> onnx.ModelProto:
    """A depthwise convolution of an image of 32 channels and the 1 × 1 convolution of its result, among others."""
    return model(
        f"(float[1, 32, {size}, {size}] x) => (float[1, 64, {size}, {size}] y) {{ "
        "a = Conv <pads = [1, 1, 1, 1]> (x, v) d = Conv <pads = [1, 1, 1, 1], group = 32> (a, w) b = Conv (d, p) "
        "y = Conv <pads = [1, 1, 1, 1]> (b, q) }",
        v=(32, 32, 3, 3),
        w=(32, 1, 3, 3),
        p=(64, 32, 1, 1),
        q=(64, 64, 3, 3),
    )


def test_the_command_shows_a_pair_and_each_of_its_convolutions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler.compile(depthwise_and_point(112)).save(tmp_path / "m.plan")
    assert run("inspect", str(tmp_path / "m.plan"), "--prepared", "--alternatives") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if re.match(r" *2 ", line)]
    parts = [re.findall(r"the (first|second) alone", line) for line in lines]
    first, second = parts.count(["first"]), parts.count(["second"])
    assert parts == [[], []] + first * [["first"]] + second * [["second"]]
    assert first > 1 and second > 1
    assert ["chosen" in line for line in lines] == [True] + [False] * (len(lines) - 1)
    assert "while it is in the cache" in lines[0] and "in two steps" in lines[1]


@pytest.mark.parametrize(("size", "together"), [(112, True), (28, False)])
def test_a_fused_pair_of_convolutions_lists_both_times(size: int, together: bool) -> None:
    made = depthwise_and_point(size)
    steps = [step for step in compiler.load(compiler.compile(made)).prepared().steps if step.op == "Conv"]
    assert (len(steps) == 3) is together
    if together:
        whole, first, second = ([each for each in steps[1].alternatives if each.part == part] for part in (None, 0, 1))
        assert [each.form.rpartition(", then ")[2] for each in whole] == [
            "direct, in blocks while it is in the cache",
            "direct, in blocks, in two steps",
        ]
        assert steps[1].kernel == whole[0].form
        alone = [min((each for each in part if each.in_blocks), key=lambda each: each.time) for part in (first, second)]
        assert [each.form for each in alone] == ["depthwise, in blocks", "direct, in blocks"]
        assert {each.form for each in first} >= {"direct, in rows", "depthwise, in blocks within the step"}
        assert {each.form for each in second} >= {"direct, in rows", "direct, in blocks within the step"}
        # Two steps also write and read the image between them.
        between = 4 * 32 * size * size / 16
        assert whole[1].time == pytest.approx(sum(each.time for each in alone) + between)
        assert whole[0].time < whole[1].time
    else:
        depthwise = {each.form: each for each in steps[1].alternatives}["depthwise, in blocks"]
        assert depthwise.saving is not None and depthwise.saving > 0


BY_ROWS = "B in place, row by row"
IN_PLACE = ["B in place", "B packed on the way"]
"""Forms of a matrix product."""


@pytest.mark.parametrize(
    ("text", "weights", "expected"),
    [
        ("(float[n, 80] x) => (float[n, 60] y) { y = MatMul (x, w) }", (80, 60), ["B prepacked"]),
        ("(float[2, 4, 80] x, float[80, 60] w) => (float[2, 4, 60] y) { y = MatMul (x, w) }", (), IN_PLACE),
        ("(float[4, 80] x, float[80, 600] w) => (float[4, 600] y) { y = Gemm (x, w) }", (), [BY_ROWS, *IN_PLACE]),
        ("(float[99, 800] x, float[800, 60] w) => (float[99, 60] y) { y = Gemm (x, w) }", (), IN_PLACE[::-1]),
        ("(float[4, 80] x, float[60, 80] w) => (float[4, 60] y) { y = Gemm <transB = 1> (x, w) }", (), IN_PLACE[1:]),
        ("(float[4, n] x, float[n, 60] w) => (float[4, 60] y) { y = MatMul (x, w) }", (), []),
        ("(double[4, 8] x, double[8, 6] w) => (double[4, 6] y) { y = MatMul (x, w) }", (), []),
        ("(float[0, 8] x, float[8, 6] w) => (float[0, 6] y) { y = MatMul (x, w) }", (), []),
    ],
    ids=["constant", "near", "few rows", "many rows", "transposed", "unknown depth", "double", "empty"],
)
def test_alternatives_of_a_product_are_sorted_as_expected(
    text: str, weights: tuple[int, ...], expected: list[str]
) -> None:
    (step,) = prepared(text, **({"w": weights} if weights else {})).steps
    assert [each.form for each in sorted(step.alternatives, key=lambda each: each.time)] == expected
    assert all(each.time > 0 and not each.in_blocks for each in step.alternatives)


@pytest.mark.parametrize("rows", ["1", "8", "rows"])
def test_the_cheapest_format_of_weights_is_chosen(rows: str) -> None:
    made = model(f"(float16[{rows}, 80] x) => (float16[{rows}, 60] y) {{ y = MatMul (x, w) }}")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((80, 60), np.float16), "w"))
    (step,) = compiler.load(compiler.compile(made)).prepared().steps
    times = {each.form: each.time for each in step.alternatives}
    assert times.keys() == {"B prepacked", "B prepacked as float16"}
    assert step.kernel == "B prepacked as float16"
    assert times[step.kernel] <= times["B prepacked"]


@pytest.mark.parametrize(("groups", "dense"), [(1, True), (8, False)])
def test_the_cheapest_form_of_a_quantized_convolution_is_chosen(groups: int, dense: bool) -> None:
    made = model(
        "(uint8[n, 8, 12, 40] x) => (uint8[n, 8, 12, 40] y) { "
        "one = Constant <value_float = 1.0> () zero = Constant <value = uint8 {128}> () "
        f"y = QLinearConv <pads = [1, 1, 1, 1], group = {groups}> (x, one, zero, w, one, zero, one, zero) }}"
    )
    codes = np.random.default_rng(0).integers(0, 256, (8, 8 // groups, 3, 3), np.uint8)
    made.graph.initializer.append(onnx.numpy_helper.from_array(codes, "w"))
    steps = compiler.load(compiler.compile(made)).prepared().steps
    (step,) = [step for step in steps if step.op == "QLinearConv"]
    assert step.kernel == min(step.alternatives, key=lambda each: each.time).form
    assert "depthwise" not in step.kernel if dense else "depthwise" in step.kernel
    assert len(step.alternatives) == 1 if dense else len(step.alternatives) > 1
