"""Models, inputs and a call of the command, which the tests of several commands share."""

from __future__ import annotations

import importlib

import click
import numpy as np
import pytest

from compiler import cli
from compiler.cli import main

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
echo (float[batch, 3] x, int64[2] n) => (float[batch, 3] y, int64[2] m) { y = Identity(x)  m = Identity(n) }
"""
REFUSED = """
<ir_version: 9, opset_import: ["": 20, "private": 1]>
odd (float[2] x) => (float[2] z) { y = private.Melt(x)  z = private.Freeze(y) }
"""
# onnxruntime has no AveragePool of opset 6.
OLD = """
<ir_version: 8, opset_import: ["": 6]>
old (float[1, 1, 2] x) => (float[1, 1, 1] y) { y = AveragePool <kernel_shape = [2]> (x) }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.array([3, 4])


def run(*arguments: str) -> int:
    """The exit code of `candlec` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def verbs() -> dict[str, click.Command]:
    """Every verb, and every verb of a group, such as `zoo run`."""
    found = {name: importlib.import_module(f"compiler.cli.{name}").command for name in cli.VERBS}
    groups = {name: each for name, each in found.items() if isinstance(each, click.Group)}
    return found | {f"{name} {key}": sub for name, group in groups.items() for key, sub in group.commands.items()}
