"""The project's own network: its plan needs no other file, threads may share it, and its 3-D variant is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import compiler
from tests.trained.zoo import ABSENT, ROOT, distances, entries, expected

ENTRIES = entries()
DIGITS = ENTRIES["digits"]
CALLERS = 8

REFUSED = [
    # message, module, layer, line, function
    ("3-D convolution is not supported (kernel 3×3×3)", "encoder.0.conv", "Conv3d", 29, "Block3D"),
    ("3-D batch normalization is not supported", "encoder.0.norm", "BatchNorm3d", 29, "Block3D"),
    ("3-D max pooling is not supported (kernel 2×2×2)", "encoder.1", "MaxPool3d", 41, "DigitClips"),
    ("3-D convolution is not supported (kernel 3×3×3)", "encoder.2.conv", "Conv3d", 29, "Block3D"),
    ("3-D batch normalization is not supported", "encoder.2.norm", "BatchNorm3d", 29, "Block3D"),
]


def test_3d_layers_are_refused_each_with_its_line() -> None:
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(ROOT / "models/digits_3d.onnx")
    source = (ROOT / "models/digits_3d.py").read_text().splitlines()
    found = []
    for diagnostic in error.value.diagnostics:
        assert diagnostic.code == "CC0301" and diagnostic.severity == "error" and diagnostic.origin is not None
        origin = diagnostic.origin
        assert len(origin.nodes) == 1
        place, _, function = origin.source.partition(" in ")
        file, _, line = place.rpartition(":")
        assert file == "models/digits_3d.py"
        found.append((diagnostic.message, origin.module, origin.layer, int(line), function.removesuffix(".forward")))
        assert "self.conv(x)" in source[int(line) - 1] or "self.encoder(clip)" in source[int(line) - 1]
    assert sorted(found) == sorted(REFUSED)


def test_a_plan_alone_in_a_folder_runs_from_another(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    compiler.compile(DIGITS.path).save(there / "digits.plan")
    assert [path.name for path in there.iterdir()] == ["digits.plan"]
    [case] = DIGITS.cases
    command = [
        sys.executable,
        "-m",
        "compiler",
        "run",
        str(there / "digits.plan"),
        "--input",
        str(case),
        "-o",
        "out.npz",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(here / "out.npz") as found:
        assert max(distances(dict(found), expected("digits", case)).values()) <= 1e-5
    assert [path.name for path in there.iterdir()] == ["digits.plan"]


@pytest.mark.parametrize("name", ["digits", "silero_vad_v6", "yolox_nano"])
def test_threads_share_a_session(name: str) -> None:
    """Several threads run different inputs at once, and get the results of separate sessions."""
    if name not in ENTRIES:
        pytest.skip(ABSENT)
    entry = ENTRIES[name]
    plan = compiler.compile(entry.path)
    session = compiler.load(plan, threads=2)
    first = entry.inputs(entry.cases[0])
    feeds = [{key: _scaled(array, 1 + 0.1 * caller) for key, array in first.items()} for caller in range(CALLERS)]
    alone = [compiler.load(plan, threads=1).run(inputs) for inputs in feeds]
    start = threading.Barrier(CALLERS)

    def call(caller: int) -> list[dict[str, np.ndarray]]:
        start.wait()
        return [session.run(feeds[caller]) for _ in range(3)]

    with ThreadPoolExecutor(CALLERS) as callers:
        every = list(callers.map(call, range(CALLERS)))
    for wanted, runs in zip(alone, every, strict=True):
        for found in runs:
            assert {key: value.tobytes() for key, value in found.items()} == {
                key: value.tobytes() for key, value in wanted.items()
            }
    for output in alone[0]:
        assert len({wanted[output].tobytes() for wanted in alone}) > 1, "the inputs make no difference"


def _scaled(array: np.ndarray, factor: float) -> np.ndarray:
    return (array * factor).astype(array.dtype) if array.dtype.kind == "f" else array
