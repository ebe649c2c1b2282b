"""Cases in the format of the ONNX model zoo: folders of serialized inputs and outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import compiler.zoo
from compiler.zoo.listing import list_models
from tests.cli.command import run
from tests.zoo.data_sets import write_data_set

SUB = '<ir_version: 9, opset_import: ["": 20]> sub (float[3] a, float[3] b) => (float[3] y) { y = Sub (a, b) }'
A, B = np.array([1, 2, 3], np.float32), np.array([4, 6, 8], np.float32)


def case_of(folder: Path, text: str = SUB, **more: Any) -> compiler.zoo.Case:
    """The case of a model whose data sets are in a folder."""
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    (folder / "INDEX.json").write_text(json.dumps([{"name": "m", "file": "model.onnx", **more}]))
    [case] = compiler.zoo.cases(folder)
    return case


@pytest.mark.parametrize(
    ("inputs", "names"),
    [([A, B], None), ([A, B], ["a", "b", "y"]), ([B, A], ["b", "a", "y"]), ([A, B], ["b", "other", ""])],
    ids=["without names", "in order", "in another order", "with other names"],
)
def test_the_values_have_the_names_of_the_model(inputs: list[Any], names: list[str] | None, tmp_path: Path) -> None:
    write_data_set(tmp_path / "test_data_set_0", inputs, [A - B], names)
    case = case_of(tmp_path)
    [place] = case.entry.cases
    read = case.entry.inputs(place)
    np.testing.assert_array_equal(read["a"], A)
    np.testing.assert_array_equal(read["b"], B)
    np.testing.assert_array_equal(case.entry.outputs(place)["y"], A - B)
    outcome = case.check()
    assert outcome.ok and outcome.worst.verdict == "equal"


def test_wrong_outputs_of_a_file_are_noticed(tmp_path: Path) -> None:
    for number in (0, 1, 10, 2):
        write_data_set(tmp_path / f"test_data_set_{number}", [A, B], [A - B + (number == 10)])
    case = case_of(tmp_path)
    assert [each.name[14:] for each in case.entry.cases] == ["0", "1", "2", "10"]
    outcome = case.check()
    assert not outcome.ok
    assert outcome.worst.verdict == "different"
    [remark] = outcome.outcomes[0].remarks
    assert remark.startswith("test_data_set_10: y of the files: difference 1.0e+00, tolerance 4.0e-05; ")
    assert "error against double precision 0.0e+00, the file's 1.0e+00" in remark


def test_listed_folders_and_files_are_cases(tmp_path: Path) -> None:
    write_data_set(tmp_path / "sets" / "first", [A, B], [])
    np.savez(tmp_path / "io.npz", a=A, b=B)
    case = case_of(tmp_path, cases=["sets/first", "io.npz"])
    outcome = case.check()
    assert outcome.ok and [each["name"] for each in outcome.outcomes[0].outputs] == ["y"]


def test_sequences_strings_and_other_dtypes(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 20]>
    m (seq(float[2]) s, bfloat16[2] h, string[2] t) => (float[n] y, bfloat16[2] k, string[2] u)
    { y = ConcatFromSequence <axis = 0> (s)  k = Neg (h)  u = Identity (t) }"""
    items, half = [np.ones(2, np.float32), np.zeros(2, np.float32)], np.array([1, 2], ml_dtypes.bfloat16)
    words = np.array(["one", "zwölf"], object)
    write_data_set(tmp_path / "test_data_set_0", [items, half, words], [np.concatenate(items), -half, words])
    case = case_of(tmp_path, text)
    [place] = case.entry.cases
    read = case.entry.inputs(place)
    assert [each.tolist() for each in read["s"]] == [[1, 1], [0, 0]]
    assert read["h"].dtype == ml_dtypes.bfloat16 and read["t"].tolist() == ["one", "zwölf"]


@pytest.mark.parametrize("names", [None, ["b", "a"]], ids=["in order", "by name"])
def test_commands_read_the_inputs_of_a_folder(
    names: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_data_set(Path("set"), [A, B] if names is None else [B, A], [], names)
    onnx.save(onnx.parser.parse_model(SUB), "sub.onnx")
    assert run("compile", "sub.onnx") == 0
    assert run("run", "sub.plan", "--input", "set", "--output", "y.npz") == 0
    np.testing.assert_array_equal(np.load("y.npz")["y"], A - B)
    for verb in ("verify", "bisect"):
        assert run(verb, "sub.onnx", "--input", "set") == 0
    capsys.readouterr()
    (tmp_path / "empty").mkdir()
    assert run("run", "sub.plan", "--input", "empty") == 1
    assert "empty has no file input_0.pb" in capsys.readouterr().err
    (tmp_path / "set/input_1.pb").write_bytes(b"\xff")
    assert run("run", "sub.plan", "--input", "set") == 1
    assert "input_1.pb holds no TensorProto" in capsys.readouterr().err


def test_initializers_among_the_inputs_need_no_file(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(SUB)
    model.graph.initializer.append(onnx.numpy_helper.from_array(B, "b"))
    write_data_set(tmp_path / "test_data_set_0", [A], [A - B])
    case = case_of(tmp_path)
    onnx.save(model, tmp_path / "model.onnx")
    assert list(case.entry.inputs(case.entry.cases[0])) == ["a"]
    assert case.check().worst.verdict == "equal"


@pytest.mark.parametrize(
    ("inputs", "file", "data", "problem"),
    [
        ([A], "", b"", "test_data_set_0 has no file for the input 'b' of model.onnx"),
        ([A, B, B], "", b"", "test_data_set_0 has 3 inputs, but the model has 2"),
        ([A, B], "input_3.pb", b"", "input_3.pb is left over: the files of test_data_set_0 are input_0.pb, input_1.pb"),
        ([A, B], "input_1.pb", b"\xff", "input_1.pb holds no TensorProto: it is truncated, or of another format"),
        ([A, B], "output_0.pb", b"\xff", "output_0.pb holds no TensorProto: it is truncated, or of another format"),
        ([A, B], "input_1.pb", onnx.TensorProto(dims=[3], data_type=1, raw_data=b"12").SerializeToString(), "holds no"),
        (
            [A, B],
            "input_1.pb",
            onnx.TensorProto(dims=[3], data_type=1, data_location=1).SerializeToString(),
            "input_1.pb holds no TensorProto: a tensor is in another file",
        ),
    ],
)
def test_files_that_do_not_fit(inputs: list[Any], file: str, data: bytes, problem: str, tmp_path: Path) -> None:
    write_data_set(tmp_path / "test_data_set_0", inputs, [A - B])
    if file:
        (tmp_path / "test_data_set_0" / file).write_bytes(data)
    outcome = case_of(tmp_path).check()
    assert outcome.worst.verdict == "failed"
    assert problem in outcome.message


def test_an_index_lists_data_sets(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_data_set(tmp_path / name / "test_data_set_0", [A, B], [A - B])
        onnx.save(onnx.parser.parse_model(SUB), tmp_path / name / "model.onnx")
    onnx.save(onnx.parser.parse_model(SUB), tmp_path / "two" / "other.onnx")
    assert list_models(tmp_path, {}).added == ["one/model", "two/model", "two/other"]
    listed = {each["name"]: each["cases"] for each in json.loads((tmp_path / "INDEX.json").read_text())}
    assert listed == {
        "one/model": ["one/test_data_set_0"],
        "two/model": ["two/model.npz"],
        "two/other": ["two/other.npz"],
    }
    assert all(outcome.ok for outcome in compiler.zoo.run(tmp_path))
