"""A bundle of small plans, for the tests of the commands on a GPU."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENOUGH = ("--seconds", "1500")
"""The option that gives a command enough time on a slow and busy machine."""
NETWORK = """
import torch

def build(name):
    return torch.nn.Softmax(-1)
"""
SANITIZER = """#!/bin/sh
echo "========= $2 SUMMARY: 0 errors"
shift 2
exec "$@"
"""


def tool(name: str) -> Any:
    """A module of tools/."""
    for folder in (str(ROOT / "tools"), str(ROOT)):
        if folder not in sys.path:
            sys.path.append(folder)
    return importlib.import_module(name)


def write_bundle(folder: Path) -> Path:
    """Writes a bundle with a model or two in every section."""
    gather, files, drawn = tool("gpu.gather"), tool("gpu.files"), tool("gpu.drawn")
    graphs = tool("gpu.graphs")
    small = {model["name"]: gather.with_results(model) for model in graphs.small()}
    paths = {model["name"]: gather.with_results(model) for model in graphs.paths()}
    given = [("x", (4, 400), 0)]
    network = {**small["softmax"], **drawn.blanked(small["softmax"]["plan"]), "inputs": given, "is_large": False}
    network |= gather.expected(network) | {"name": "network-b1", "module": "network", "network": "softmax"}
    tests = [small["softmax"], small["topk"], paths["integers"]]
    convolution = next(iter(gather.of_convolutions()))
    sections = {
        "small": list(small.values()),
        "paths": [paths["elementwise"], paths["product"], paths["a loop"]],
        "sanitized": [{"name": "group0", "group": [small["softmax"], small["topk"]]}],
        "convolutions": [convolution],
        "trained": [small["expand"], small["gather"]],
        "operators": [{"name": "000", "tests": tests}],
        "networks": [network],
    }
    folder.mkdir()
    named = {name: files.write(folder, name, models) for name, models in sections.items()}
    facts = {
        "commit": tool("gpu.bundle").commit(),
        "command": "make cuda-bundle",
        "made": time.time() - 5700,  # two hours, rounded, for another 55 minutes
        "sections": named,
    }
    files.write_about(
        folder, {**facts, "tests": [test["name"] for test in tests], "kernels": {"softmax/softmax_f32": True}}
    )
    (folder.parent / "network.py").write_text(NETWORK)
    return folder


def environment(folder: Path, **more: str) -> Mapping[str, str]:
    """The environment of a command whose programs and modules are in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "OUT"}
    return {**kept, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": f"{folder}:{ROOT}", **more}


def command(bundle: Path, *options: str, device: str = "emulator") -> list[str]:
    """The arguments of a command."""
    return [sys.executable, f"{ROOT}/tools/cuda_check.py", "--bundle", str(bundle), "--device", device, *options]


def called(bundle: Path, out: Path, *options: str, device: str = "emulator") -> subprocess.CompletedProcess[str]:
    """A command, as it ended."""
    asked = command(bundle, "--out", str(out), *options, device=device)
    return subprocess.run(asked, env=environment(bundle.parent), capture_output=True, text=True)
