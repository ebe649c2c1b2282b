"""Folders with models, inputs and indices, in which the tests run commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.command import MODEL, REFUSED, N, X

# The scale makes rounding errors of the convolution large; onnxruntime and optimized plans fold the one into the other.
CANCELING = """
<ir_version: 8, opset_import: ["" : 13]>
unsure (float[1, 1, 64] x) => (float[1, 1, 64] y)
<float[1, 1, 1] w = {1.1}, float[1] scale = {1000000}, float[1] shift = {0}, float[1] mean = {1.1}, float[1] var = {1}>
{
    c = Conv (x, w)
    y = BatchNormalization (c, scale, shift, mean, var)
}
"""


@pytest.fixture(autouse=True)
def outside_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests print the same in a job of GitHub."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with models and inputs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    onnx.save(onnx.parser.parse_model(MODEL), "echo.onnx")
    onnx.save(onnx.parser.parse_model(REFUSED), "refused.onnx")
    np.savez("io.npz", x=X, n=N)
    np.save("x.npy", X)
    np.save("n.npy", N)
    return tmp_path


@pytest.fixture
def zoo(folder: Path) -> Path:
    """A folder of one model, with its index."""
    (folder / "INDEX.json").write_text(json.dumps([{"name": "echo", "file": "echo.onnx", "cases": ["io.npz"]}]))
    return folder


# Its second output has no form in double precision.
QUANTIZING = CANCELING.replace("=> (float[1, 1, 64] y)", "=> (float[1, 1, 64] y, uint8[1, 1, 64] q)").replace(
    "float[1] var = {1}>\n{", "float[1] var = {1}, float s = {0.5}>\n{\n    q = QuantizeLinear (x, s)"
)


def write_unsure(text: str) -> None:
    """Write the model with inputs that make its rounding errors large, and its index."""
    onnx.save(onnx.parser.parse_model(text), "unsure.onnx")
    noise = np.random.default_rng(0).standard_normal((1, 1, 64)) / 100_000
    np.savez("unsure.npz", x=(1 + noise).astype(np.float32))
    Path("INDEX.json").write_text(json.dumps([{"name": "unsure", "file": "unsure.onnx", "cases": ["unsure.npz"]}]))


@pytest.fixture
def canceling(folder: Path) -> Path:
    """A folder with a model whose rounding errors are large."""
    write_unsure(CANCELING)
    return folder


@pytest.fixture
def unsure(canceling: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `canceling`. In this process, the model has no form in double precision."""
    monkeypatch.setattr("compiler.accuracy.verify.in_double_precision", lambda *_: None)
    return canceling


@pytest.fixture
def quantizing(folder: Path) -> Path:
    """A folder with the model `unsure` and a quantized output, so that it has no form in double precision."""
    write_unsure(QUANTIZING)
    return folder
