"""The models of `models/hub`: graphs of mobius-onnx with onnxruntime's own operators."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import compiler.zoo
from compiler.zoo.baseline import read_baseline
from models.hub import __main__ as hub
from models.hub.sizes import SELECTION

BASELINE = Path(hub.__file__).with_name("zoo.toml")


def test_every_known_difference_has_a_reason() -> None:
    known = read_baseline(BASELINE)
    assert all(len(each.reason) >= 20 and "to be done" not in each.reason for each in known.values())


def test_models_are_built_and_equal_onnxruntime(tmp_path: Path) -> None:
    pytest.importorskip("mobius", reason="needs mobius-onnx")
    done = CliRunner().invoke(hub.main, ["llama", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    index = json.loads((tmp_path / "INDEX.json").read_text())
    assert [entry["name"] for entry in index] == [
        f"llama_{provider}_{weights}" for provider in ("default", "cpu") for weights in ("f32", "f16", "int4")
    ]
    operators = {node.op_type for node in onnx.load(tmp_path / "llama_cpu_int4.onnx").graph.node}
    assert {"GroupQueryAttention", "MatMulNBits", "GatherBlockQuantized"} <= operators
    with np.load(tmp_path / "llama_cpu_int4.1.npz") as step:
        assert step["input_ids"].shape == (2, 1) and step["past_key_values.0.key"].shape[2] == 4
    assert all(outcome.ok for outcome in compiler.zoo.run(tmp_path))


def test_the_same_weights_every_time(tmp_path: Path) -> None:
    pytest.importorskip("mobius", reason="needs mobius-onnx")
    files = [tmp_path / name for name in ("one", "two")]
    for folder in files:
        assert CliRunner().invoke(hub.main, ["bert", "--folder", str(folder)]).exit_code == 0
    one, two = ((folder / "bert_cpu_f32.onnx").read_bytes() for folder in files)
    assert one == two


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    mobius = pytest.importorskip("mobius", reason="needs mobius-onnx")
    done = CliRunner().invoke(hub.main, ["nothing", "--folder", str(tmp_path)])
    assert done.exit_code == 2 and "there is no architecture nothing" in done.output
    assert set(SELECTION) <= set(mobius.registry.architectures())
