"""`candlec export`: it refuses some factories, and overwrites no files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.command import run


def test_export_does_not_write_over_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "def build(): return None, ()\n"
    Path("small_net.py").write_text(text)
    assert run("export", "small_net:build", "-o", "small_net.py") == 2
    assert "small_net.py: the name of a model file must end with .onnx" in capsys.readouterr().err
    assert Path("small_net.py").read_text() == text


FACTORIES = """
value = 1
def strange(): return 1
def broken(): raise ValueError("no weights")
def torchless(): import torch
"""


TORCHLESS = 'this needs torch, which is not installed: run pip install "candle-compiler[export]"'


@pytest.mark.parametrize(
    ("factory", "code", "said"),
    [
        ("nowhere:build", 2, "nowhere:build: ModuleNotFoundError: No module named 'nowhere'"),
        ("factories:missing", 2, "factories:missing: AttributeError: "),
        ("factories:value", 2, "factories:value: TypeError: 'int' object is not callable"),
        (
            "factories:strange",
            2,
            "must return (module, arguments) or (module, arguments, dynamic), but returned an int",
        ),
        ("factories:broken", 2, "factories:broken: ValueError: no weights"),
        ("factories:torchless", 1, TORCHLESS),
    ],
)
def test_export_says_what_is_wrong_with_a_factory(
    factory: str,
    code: int,
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "factories.py").write_text(FACTORIES)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    assert run("export", factory, "-o", "x.onnx") == code
    printed = capsys.readouterr().err
    assert said in printed
    assert ("Usage:" in printed) == (code == 2)
    assert "please report it" not in printed


MODULES = """
import torch
from torch import nn

class Negative(nn.Module):
    def forward(self, x):  # PyTorch gives zeros for a node of ONNX, and the plan runs it
        return torch.onnx.ops.symbolic("Neg", (x,), dtype=x.dtype, shape=x.shape)

def wrong(): return Negative(), (torch.ones(3, 5),)
def right(): return nn.Linear(3, 2), (torch.ones(4, 3),), {"input": {0: "batch"}}
def refused(): return nn.Conv3d(1, 1, 2), (torch.ones(1, 1, 3, 3, 3),)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["checked_nets:wrong"], 1, "x.onnx does not compute what Negative computes: output "),
        (["checked_nets:wrong", "--locate"], 1, "the first module that differs is Negative, "),
        (["checked_nets:wrong", "--no-check"], 0, "x.onnx: "),
        (["checked_nets:wrong", "--no-check", "--locate"], 2, "--locate needs the check: leave out --no-check"),
        (["checked_nets:right"], 0, "the model computes what the module computes, also with batch=5"),
        (["checked_nets:right", "--json"], 0, '"checked": 2'),
        (["checked_nets:refused"], 0, "warning: not checked: the compiler refuses the model: CC0301"),
    ],
)
def test_export_checks_the_model(
    arguments: list[str], code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    (folder / "checked_nets.py").write_text(MODULES)
    assert run("export", *arguments, "-o", "x.onnx") == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert Path("x.onnx").exists() == (code != 2)
