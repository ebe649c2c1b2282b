"""`candlec compile PACKAGE.MODULE:FACTORY`: export, check and compilation in one step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import compiler
from tests.cli.command import run

MODULES = """
import torch
from torch import nn

class Negative(nn.Module):
    def forward(self, x):  # PyTorch gives zeros for a node of ONNX, and the plan runs it
        return torch.onnx.ops.symbolic("Neg", (x,), dtype=x.dtype, shape=x.shape)

class Branch(nn.Module):
    def forward(self, x):
        return x if bool(x.sum() > 0) else x + 0

def build(): return nn.Linear(3, 2), (torch.ones(4, 3),), {"input": {0: "batch"}}
def named(): return nn.Linear(3, 2), {"input": torch.ones(4, 3)}, {"input": {0: "batch"}}
def wrong(): return Negative(), (torch.ones(3, 5),)
def branch(): return Branch(), (torch.ones(3),)
def resized(): return nn.CrossMapLRN2d(3), (torch.ones(1, 4, 3, 3),)
def refused(): return nn.Conv3d(1, 1, 2), (torch.ones(1, 1, 3, 3, 3),)
"""


@pytest.fixture
def nets(folder: Path) -> Path:
    pytest.importorskip("torch", reason="needs PyTorch")
    (folder / "factory_nets").mkdir()
    (folder / "factory_nets/small.py").write_text(MODULES)
    return folder


@pytest.mark.parametrize("name", ["build", "named"])
def test_a_module_is_exported_and_compiled(name: str, nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {each.name for each in nets.iterdir()}
    assert run("compile", f"factory_nets.small:{name}", "--dim", "batch=5") == 0
    printed = capsys.readouterr().out
    assert "the model computes what the module computes, also with batch=5" in printed
    assert "small.plan: " in printed
    assert {each.name for each in nets.iterdir()} - before == {"small.plan"}
    plan = compiler.Plan.load("small.plan")
    assert plan.inputs[0].shape == (5, 3)
    assert compiler.load(plan)(np.ones((5, 3), np.float32)).shape == (5, 2)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["factory_nets.small:wrong"], 1, "factory_nets.small:wrong does not compute what Negative computes: output "),
        (["factory_nets.small:wrong", "--locate"], 1, "the first module that differs is Negative, "),
        (["factory_nets.small:wrong", "--no-check"], 0, "x.plan: "),
        (["factory_nets.small:wrong", "--no-check", "--locate"], 2, "--locate needs the check: leave out --no-check"),
        (["factory_nets.small:branch"], 0, "warning: the TorchScript exporter wrote the model"),
        (["factory_nets.small:branch", "--exporter", "dynamo"], 1, "torch.where or torch.cond instead of `if`"),
        (["factory_nets.small:missing"], 2, "factory_nets.small:missing: AttributeError: "),
        (["factory_nets.nowhere:build"], 2, "nets.nowhere:build: ModuleNotFoundError: "),
        (["factory_nets.small:refused"], 1, "CC0301"),
        (["echo.onnx", "--locate"], 2, "--locate is an option for PACKAGE.MODULE:FACTORY, and echo.onnx is a file"),
        (["echo.onnx", "--exporter", "dynamo"], 2, "--exporter is an option for PACKAGE.MODULE:FACTORY"),
    ],
)
def test_what_the_command_says(
    arguments: list[str], code: int, said: str, nets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", *arguments, "-o", "x.plan") == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert Path("x.plan").exists() == (code == 0)
    assert "/tmp/" not in printed.out + printed.err.replace(str(nets), "")


def test_programs_get_the_notes(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "factory_nets.small:branch", "-o", "x.plan", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["checked"] == 2 and printed["plan"] == "x.plan"
    assert printed["notes"][0].startswith("the TorchScript exporter wrote the model")


def test_a_file_with_a_colon_in_its_name_is_a_file(folder: Path) -> None:
    Path("nets:build").write_bytes(Path("echo.onnx").read_bytes())
    assert run("compile", "nets:build", "-o", "x.plan") == 0


def test_pytorch_prints_no_traces(nets: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "factory_nets.small:resized") == 1
    printed = capfd.readouterr()
    assert "help: the code gives a tensor other memory" in printed.err
    assert not any(said in printed.out + printed.err for said in ("prim::PythonOp", "invoke", "Warning"))
