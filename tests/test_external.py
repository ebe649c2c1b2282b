"""Weights in other files: the allowed folders, the lengths, and the errors for files that do not match."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import compiler
from compiler import CompileError

FLOATS, TEXTS = TensorProto.FLOAT, TensorProto.STRING


def model_with(folder: Path, *weights: dict[str, str], dtype=FLOATS, dims=(4,)) -> Path:
    """A model of weights in other files, and a file `w.bin` of 16 bytes."""
    (folder / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    tensors = []
    for index, facts in enumerate(weights):
        tensors.append(TensorProto(name=f"w{index}", data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL))
        for key, value in facts.items():
            tensors[-1].external_data.add(key=key, value=value)
    node, output = helper.make_node("Identity", ["w0"], ["y"]), helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph([node], "g", [], [output], tensors)
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())
    return path


@pytest.mark.parametrize(
    "facts",
    [{}, {"length": "16"}, {"length": "0"}, {"offset": "0"}, {"location": "./w.bin"}, {"checksum": "of SHA-1"}],
    ids=str,
)
def test_a_weight_that_fits_its_file(tmp_path, facts):
    session = compiler.load(compiler.compile(model_with(tmp_path, {"location": "w.bin", **facts})))
    np.testing.assert_array_equal(session.run({})["y"], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("facts", "dtype", "dims", "expected"),
    [
        ({"length": "4"}, FLOATS, [4], "'w0' of shape [4] has 16 bytes, but the model says 4"),
        ({"length": "16"}, FLOATS, [2], "'w0' of shape [2] has 8 bytes, but the model says 16"),
        ({"length": "abc"}, FLOATS, [4], "the length of 'w0' is 'abc'"),
        ({"offset": "-4"}, FLOATS, [2], "the offset of 'w0' is '-4'"),
        ({"offset": "8"}, FLOATS, [4], "'w0' ends at byte 24, but the file has 16"),
        ({}, FLOATS, [5], "'w0' ends at byte 20, but the file has 16"),
        ({"length": "3"}, TensorProto.INT4, [3], "'w0' of shape [3] has 2 bytes, but the model says 3"),
        ({}, TEXTS, [1], "'w0' has a type or shape that no file can hold"),
        ({}, FLOATS, [-1], "'w0' has a type or shape that no file can hold"),
        ({"location": ""}, FLOATS, [4], "the weight 'w0' is in another file, but the model does not name the file"),
        ({"location": "@/w.bin"}, FLOATS, [4], "w.bin', which is an absolute path"),
        ({"location": "C:\\w.bin"}, FLOATS, [4], "which is an absolute path"),
        ({"location": "in/../w.bin"}, FLOATS, [4], "which is outside the model's folder"),
        ({"location": "x.bin"}, FLOATS, [0], "the weight 'w0' is in the file 'x.bin', which does not exist"),
        ({"location": "."}, FLOATS, [4], "which is a directory"),
        ({"location": "link"}, FLOATS, [4], "which is a link out of the model's folder"),
        ({"location": "circle"}, FLOATS, [4], "which cannot be found"),
        ({"location": "hard"}, FLOATS, [4], "which has a second name elsewhere"),
        ({"location": "w.bin/x"}, FLOATS, [4], "which cannot be found: Not a directory"),
    ],
    ids=str,
)
def test_a_weight_that_does_not_fit_its_file(tmp_path, facts, dtype, dims, expected):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(bytes(16))
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "hard").hardlink_to(tmp_path / "outside")
    facts = {"location": "w.bin", **facts}
    facts["location"] = facts["location"].replace("@", str(folder))
    with pytest.raises(CompileError) as error:
        compiler.compile(model_with(folder, facts, dtype=dtype, dims=dims))
    [found] = error.value.diagnostics
    assert found.code == "CC0103"
    assert expected in found.message


def test_one_finding_for_each_file(tmp_path):
    missing, short = {"location": "x.bin"}, {"location": "w.bin", "length": "4"}
    with pytest.raises(CompileError) as error:
        compiler.compile(model_with(tmp_path, *[missing] * 5, short, short, {"location": "w.bin"}))
    assert [each.message for each in error.value.diagnostics] == [
        "the weights 'w0', 'w1', 'w2' and 2 more are in the file 'x.bin', which does not exist",
        "the file 'w.bin' does not match the model: "
        "'w5' of shape [4] has 16 bytes, but the model says 4; "
        "'w6' of shape [4] has 16 bytes, but the model says 4",
    ]
    assert error.value.diagnostics[0].help == f"put it next to the model, as {tmp_path / 'x.bin'}"


def test_without_a_path_no_file_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = model_with(tmp_path, {"location": "w.bin"}).read_bytes()
    with pytest.raises(CompileError) as error:
        compiler.compile(data)
    assert [each.help for each in error.value.diagnostics] == ["pass the path of the model's file"]
