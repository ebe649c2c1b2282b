"""Imports and exports ahead of time: a process that begins as a copy of one with this module exports at once."""

from __future__ import annotations

import importlib
import tempfile
from contextlib import suppress
from pathlib import Path

import torch

import compiler

LIBRARIES = (
    "diffusers",
    "timm",
    "torchvision",
    "transformers.models.auto.modeling_auto",
    "transformers.modeling_utils",
)


def _warm_up() -> None:
    """Import the installed libraries, and export a tiny network, so that PyTorch loads everything that it needs."""
    torch.set_num_threads(1)  # a copy of a process lacks its other threads
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder:
        network, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), torch.zeros(2, 4)
        compiler.export(network, (x,), Path(folder) / "tiny.onnx", dynamic={"input": {0: "batch"}}, check=False)


_warm_up()
