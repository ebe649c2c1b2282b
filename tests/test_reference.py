"""onnxruntime as the reference: values beside dtypes that NumPy lacks, refusals, and paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import compiler
from compiler.accuracy import onnxruntime_values
from compiler.accuracy.compare import compare
from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.bench.engines import ENGINES, Case


def parsed(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "own" : 1]> m {graph}')


B = np.array([1.5, 2], ml_dtypes.bfloat16)
F = B.astype(np.float32)
WORDS = np.array(["ä", "b"], object)

OTHERS = {
    "a sequence": (
        """(bfloat16[2] x, seq(float[N]) s) => (bfloat16[2] y, seq(float[N]) t, int64 n)
        { y = Identity (x)  f = Cast <to = 1> (x)  t = SequenceInsert (s, f)  n = SequenceLength (s) }""",
        {"x": B, "s": [F, F[:1]]},
        {"y": B, "t": [F, F[:1], F], "n": np.int64(2)},
    ),
    "an empty sequence": (
        "(bfloat16[2] x, seq(int64[N]) s) => (bfloat16[2] y, int64 n) { y = Identity (x)  n = SequenceLength (s) }",
        {"x": B, "s": []},
        {"y": B, "n": np.int64(0)},
    ),
    "an empty sequence of the dtype": (
        "(bfloat16[2] x) => (bfloat16[2] y, seq(bfloat16[]) s) { y = Identity (x)  s = SequenceEmpty <dtype = 16> () }",
        {"x": B},
        {"y": B, "s": []},
    ),
    "strings": (
        """(bfloat16[2] x, string[2] s, seq(string[N]) q) => (bfloat16[2] y, string[2] t, seq(string[N]) r)
        { y = Identity (x)  t = Identity (s)  r = Identity (q) }""",
        {"x": B, "s": WORDS, "q": [WORDS[:1]]},
        {"y": B, "t": WORDS, "r": [WORDS[:1]]},
    ),
    "strings without outputs of the dtype": (
        "(bfloat16[2] x, string[2] s) => (float[2] y, string[2] t) { y = Cast <to = 1> (x)  t = Identity (s) }",
        {"x": B, "s": WORDS},
        {"y": F, "t": WORDS},
    ),
    "an optional": (
        """(bfloat16[2] x, optional(float[2]) o) => (bfloat16[2] y, bool h, optional(float[2]) p)
        { y = Identity (x)  h = OptionalHasElement (o)  p = Identity (o) }""",
        {"x": B, "o": F},
        {"y": B, "h": np.True_, "p": F},
    ),
    "an empty optional": (
        """(bfloat16[2] x, optional(float[2]) o) => (bfloat16[2] y, bool h, optional(float[2]) p)
        { y = Identity (x)  h = OptionalHasElement (o)  p = Identity (o) }""",
        {"x": B, "o": None},
        {"y": B, "h": np.False_, "p": None},
    ),
    "an optional sequence": (
        """(bfloat16[2] x, optional(seq(float[N])) o) => (bfloat16[2] y, bool h)
        { y = Identity (x)  h = OptionalHasElement (o) }""",
        {"x": B, "o": [F, F]},
        {"y": B, "h": np.True_},
    ),
    "a captured value": (
        """(bfloat16[2] x, bool c) => (bfloat16[2] y) {
            y = If (c) <
                then_branch = yes () => (bfloat16[2] t) { t = Identity (x) },
                else_branch = no () => (bfloat16[2] e) { f = Cast <to = 1> (x)  g = Neg (f)  e = Cast <to = 16> (g) }
            >
        }""",
        {"x": B, "c": np.array(False)},
        {"y": -B},
    ),
}


@pytest.mark.parametrize(("graph", "inputs", "expected"), OTHERS.values(), ids=OTHERS)
def test_other_values_pass_beside_a_dtype_that_numpy_lacks(
    graph: str, inputs: dict[str, Any], expected: dict[str, Any]
) -> None:
    model = parsed(graph)
    for found in (Reference(model).run(inputs), Reference(model, optimize=False, as_written=True).run(inputs)):
        assert list(found) == list(expected)
        assert compare(expected, found, tolerance=0).equal
    report = compiler.verify(model, inputs=inputs)
    assert report.equal
    assert {each.dtype for each in report.outputs if each.name in "tr"} <= {"string", "float32"}


@pytest.mark.parametrize(("taken", "given"), [("float", "bfloat16"), ("int4", "float"), ("bfloat16", "int4")])
def test_a_timed_run_converts_no_inputs(
    taken: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = onnx.TensorProto.DataType.Value(given.upper())
    cast = f"({taken}[3] x) => ({given}[3] y) {{ f = Cast <to = 1> (x)  y = Cast <to = {number}> (f) }}"
    onnx.save(parsed(cast), tmp_path / "cast.onnx")
    numbers = np.array([1, 2, 3], np.float32)
    inputs = {"x": numbers.astype(getattr(ml_dtypes, taken, taken + "32"))}
    run = ENGINES["onnxruntime"].load(Case("cast", tmp_path / "cast.plan", inputs, tmp_path / "cast.onnx"), 1)
    for name in ("_value_of_bits", "to_value", "converted"):
        monkeypatch.delattr(onnxruntime_values, name)
    for _ in range(2):
        np.testing.assert_array_equal(run()["y"].astype(np.float32), numbers)


CALLING = """(int4[2] x) => (int4[2] y) { y = own.Same (x) }
<domain: "own", opset_import: ["" : 21]> Same (x) => (y) { y = Identity (x) }"""


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("(int4[2] x) => (int4[2] y) { y = Identity (x) }", r"\(dtypes of Identity in the model: int4\)"),
        ("(float4e2m1[2] x) => (float[2] y) { y = Cast <to = 1> (x) }", r"float4e2m1"),
        (CALLING, r"\(dtypes of the model: int4\)"),
        ("(bfloat16[2] x) => (bfloat16[2] y) { y = Det (x) }", r"bfloat16"),
    ],
)
def test_a_refusal_names_the_dtype(graph: str, said: str) -> None:
    with pytest.raises(ReferenceFailed, match=f"^onnxruntime refuses the model: .*{said}"):
        Reference(parsed(graph))


def test_inputs_of_another_dtype_are_refused() -> None:
    reference = Reference(parsed("(bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }"))
    with pytest.raises(ReferenceFailed, match=r"Actual: \(tensor\(float\)\) , expected: \(tensor\(bfloat16\)\)"):
        reference.run({"x": F})
    for inputs in ({}, {"x": None}):
        with pytest.raises(ReferenceFailed, match=r"^onnxruntime fails on these inputs: missing: x$"):
            reference.run(inputs)


@pytest.mark.parametrize("graph", ["(bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }", OTHERS["strings"][0]])
def test_outputs_of_several_runs_have_memory_of_their_own(graph: str) -> None:
    inputs = {"x": B.copy(), "s": WORDS, "q": [WORDS]}
    reference = Reference(parsed(graph))
    run = reference.prepared({name: inputs[name] for name in reference.inputs})
    one, other = run()["y"], run()["y"]
    assert not np.shares_memory(one, other) and not np.shares_memory(one, inputs["x"])


@pytest.fixture
def folder_of_bytes(tmp_path: Path) -> Path:
    """The path of an empty folder that is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    return folder


@pytest.mark.parametrize("is_external", [False, True])
def test_a_path_may_contain_any_bytes(
    is_external: bool, folder_of_bytes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parsed("(float[2] x, float[2] w) => (float[2] y) { y = Mul (x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3], np.float32), "w"))
    written, path = tmp_path / "written", folder_of_bytes / os.fsdecode(b"th\xe9.onnx")
    written.mkdir()  # the onnx package writes no weights into the other folder
    onnx.save(model, written / path.name, save_as_external_data=is_external, location="w.bin", size_threshold=0)
    written.replace(folder_of_bytes)
    (output,) = compiler.verify(path, inputs={"x": F}).outputs
    assert output.verdict == "equal"
    np.testing.assert_array_equal(Reference(str(path)).run({"x": F})["y"], [3, 6])
    monkeypatch.setattr("compiler.frontend.load.LARGEST", 4)
    with pytest.raises(ReferenceFailed, match=r"that is not UTF-8, and the model .* in memory: .*larger than 2 GiB"):
        Reference(path)


def test_a_missing_file_is_named(folder_of_bytes: Path) -> None:
    with pytest.raises(ReferenceFailed, match="No such file or directory"):
        Reference(folder_of_bytes / "missing.onnx")
