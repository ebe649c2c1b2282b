"""`candlec compile --weights`: the price of each layer, the weights that stay, and wrong use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from tests.cli.command import run
from tests.gguf_files import gguf, matrix

TEXT = """<ir_version: 10, opset_import: ["" : 21]> two (float[n, 48] x) => (float[n, 40] y) {
    h = MatMul (x, first.weight) y = MatMul (h, second.weight)
}"""

LINEAR = """<ir_version: 10, opset_import: ["" : 21]> two (float[n, 64] x) => (float[n, 64] y) {
    h = Gemm <transB = 1> (x, first) y = Gemm <transB = 1> (h, second)
}"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with two products."""
    made = onnx.parser.parse_model(TEXT.replace(".weight", "_weight"))
    generator = np.random.default_rng(0)
    for node, shape in zip(made.graph.node, ((48, 48), (48, 40)), strict=True):
        node.input[1] = node.input[1].replace("_weight", ".weight")
        weights = generator.standard_normal(shape, np.float32)
        made.graph.initializer.append(numpy_helper.from_array(weights, node.input[1]))
    path = tmp_path / "two.onnx"
    onnx.save(made, path)
    return path


def test_the_price_of_each_layer_is_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "--weights", "int4", "--keep", "second") == 0
    printed = capsys.readouterr().out
    assert re.search(r"MatMul\(h\) +int4, 2304 weights, relative error \d+\.\d\d%", printed)
    assert "1 not quantized: the option `keep` names them" in printed
    assert "MatMul(y)" not in printed


def test_json_has_the_price_of_each_layer(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "--weights", "int8", "--json") == 0
    passes = json.loads(capsys.readouterr().out)["passes"]
    (quantized,) = [each for each in passes if each["name"] == "quantize_weights"]
    assert quantized["fired"] == {"QuantizeProduct": 2}
    assert [each["origin"] for each in quantized["notes"]] == ["MatMul(h)", "MatMul(y)"]
    assert all("relative error" in each["note"] for each in quantized["notes"])


def test_the_matrices_that_stay_quantized_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = onnx.parser.parse_model(LINEAR)
    for name in ("first", "second"):
        made.graph.initializer.append(numpy_helper.from_array(np.zeros((64, 64), np.float32), name))
    onnx.save(made, tmp_path / "linear.onnx")
    tensors = {"first": matrix("Q8_0", 64, 64).stored(), "second": matrix("F16", 64, 64).stored()}
    (tmp_path / "linear.gguf").write_bytes(gguf(tensors))
    assert run("compile", str(tmp_path / "linear.onnx"), "--weights", str(tmp_path / "linear.gguf")) == 0
    printed = capsys.readouterr().out
    assert re.search(r"replace_weights .* weights replaced: 2\n", printed)
    assert re.search(r"Gemm\(h\) +Q8_0, 4096 weights\n", printed)
    assert "1 not kept as codes: the file has no codes for these numbers\n" in printed


WRONG = [
    (
        ["--keep", "first"],
        2,
        "--keep names weights that --weights and --precision leave as they are: give --weights or --precision too",
    ),
    (["--weights", "int3"], 2, "'int3' is not a format of weights: use int8, int4, or int4:64 for blocks of 64"),
    (["--weights", "absent.gguf"], 2, "the file 'absent.gguf' does not exist"),
    (["--weights", "int8", "--keep-weights"], 2, "--weights changes weights: leave it out, or --keep-weights"),
    (["--weights", "int4:24"], 2, "'int4:24': the size of a block is a multiple of 16"),
    (["--keep", "third", "--weights", "int8"], 1, "error[CC0407]: no weight has the name 'third'"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG)
def test_wrong_use(
    model: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", str(model), *arguments) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not model.with_suffix(".plan").exists()


def test_verify_says_that_weights_with_fewer_bits_differ(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "-o", str(model.with_suffix(".plan")), "--weights", "int4") == 0
    capsys.readouterr()
    arguments = ("verify", str(model), str(model.with_suffix(".plan")))
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert printed.count("  help:") == 1
    assert "the plan has weights with fewer bits" in printed and "set\n        --tolerance" in printed
    assert run(*arguments, "--tolerance", "1") == 0
