"""The comparison of intermediate values with onnxruntime's, which finds the first different value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler.accuracy.layerwise import compare_layers
from compiler.cli import main

ROOT = Path(__file__).parent.parent
MODEL = """
<ir_version: 9, opset_import: ["": 20]>
m (float[n, 4] x) => (float[n, 4] y)
<float[4] scale = {{1, 2, 3, 4}}, float[4] shift = {{{shift}, 1, 1, 1}}>
{{
    whole = Floor (x)
    scaled = Mul (whole, scale)
    shifted = Add (scaled, shift)
    sorted, order = TopK <axis = 1> (shifted, four)
    y = Neg (sorted)
}}
"""
X = np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32)


def model(shift: float = 1) -> onnx.ModelProto:
    made = onnx.parser.parse_model(MODEL.format(shift=shift))
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([4]), "four"))
    return made


def plan(shift: float = 1, *, optimize: bool = False) -> compiler.Plan:
    return compiler.compile(model(shift), compiler.Options(optimize=optimize))


@pytest.mark.parametrize("optimize", [True, False])
def test_what_is_right_is_equal_all_the_way(optimize: bool) -> None:
    layers = compare_layers(model(), plan(optimize=optimize), {"x": X})
    names = [each.output.name for each in layers]
    assert {"y"} < set(names) <= {"whole", "scaled", "shifted", "sorted", "y"}
    assert optimize or names == ["whole", "scaled", "shifted", "sorted", "y"]
    assert {each.output.verdict for each in layers} == {"equal"}
    assert [each.step for each in layers] == sorted(each.step for each in layers)


def test_the_first_that_differs_is_where_the_fault_is() -> None:
    layers = compare_layers(model(), plan(shift=2), {"x": X})
    verdicts = {each.output.name: each.output.verdict for each in layers}
    assert verdicts["whole"] == verdicts["scaled"] == "equal"
    first = next(each for each in layers if each.output.verdict == "different")
    assert (first.output.name, first.op, first.output.max_abs) == ("shifted", "Binary", 1.0)
    assert "Add" in first.origin
    assert compare_layers(model(), plan(shift=2), {"x": X}, tolerance=1.0)[2].output.verdict == "equal"


def test_the_plan_itself_stays() -> None:
    narrow = plan()
    before = narrow.data
    compare_layers(model(), narrow, {"x": X})
    assert narrow.data == before and [info.name for info in narrow.outputs] == ["y"]


def test_a_trained_model() -> None:
    digits = ROOT / "models/digits.onnx"
    with np.load(ROOT / "models/digits.npz") as arrays:
        inputs = dict(arrays)
    layers = compare_layers(digits, compiler.compile(digits, compiler.Options(optimize=False)), inputs)
    assert len(layers) > 50
    assert {each.output.verdict for each in layers} == {"equal"}


BRANCHES = """
<ir_version: 9, opset_import: ["": 20]>
m (bool b, float[4] x) => (float[4] y) {
    noise = RandomNormalLike <seed = 1.0> (x)
    inner = Abs (x)
    chosen = If (b) <
        then_branch = t () => (float[4] p) { p = Neg (inner) },
        else_branch = e () => (float[4] q) { other = Neg (inner)  q = Sqrt (other) }
    >
    y = Add (chosen, noise)
}
"""


def test_random_numbers_and_branches() -> None:
    made = onnx.parser.parse_model(BRANCHES)
    inputs = {"b": np.array(True), "x": X[0]}
    layers = compare_layers(made, compiler.compile(made, compiler.Options(optimize=False)), inputs)
    found = {each.output.name: each.output.verdict for each in layers}
    assert found == {"noise": "random", "inner": "equal", "chosen": "equal", "y": "random"}


def test_weights_in_another_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert all(each.output.verdict == "equal" for each in compare_layers(path, plan(), {"x": X}))


def test_verify_shows_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "model.onnx")
    np.savez("io.npz", x=X)
    for shift, code in ((1, 0), (2, 1)):
        plan(shift).save("model.plan")
        arguments = ["verify", "model.onnx", "model.plan", "--input", "io.npz", "--layerwise"]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
        printed = capsys.readouterr().out
        assert ("first to differ" in printed) is (code == 1)
        if code == 0:
            assert "intermediate values: 5 of 5 values equal onnxruntime's\n" in printed
        else:
            assert "step 2, Binary   Add(" in printed
            assert "intermediate values: 2 of 5 values equal onnxruntime's; 3 are not equal" in printed
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert next(each["name"] for each in shown["layers"] if not each["ok"]) == "shifted"
    assert {"step", "op", "origin", "max_abs"} <= shown["layers"][0].keys()
