"""Trained models with calibrated convolutions: the measures of their tasks, against the plan in float32."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from benchmarks.calibrated_models import mirrored
from compiler.zoo.agreement.task import Task
from tests.trained.zoo import ABSENT, entries

ENTRIES = entries()
MEASURED = {
    "super_resolution_pt": [Task("psnr", "output", 27)],
    "ultraface_rfb320": [Task("boxes", "boxes", 0.97, scores="scores", skip=1)],
    "deeplab_v3": [Task("top1", "ResizeBilinear_3", 0.98)],
    "oww_embedding": [Task("cosine", "conv2d_19", 0.998)],
}
"""The calibration set is the mirror image of the measured input, or the input itself if it is no image."""


@pytest.mark.parametrize("name", MEASURED)
def test_tasks_lose_little(name: str) -> None:
    if name not in ENTRIES:
        pytest.skip(ABSENT)
    entry = ENTRIES[name]
    inputs = entry.inputs(entry.cases[0])
    options = compiler.Options(precision="int8", calibration=[mirrored(inputs)])
    exact, found = (
        dict(compiler.load(compiler.compile(entry.path, each)).run(inputs)) for each in (compiler.Options(), options)
    )
    for task in MEASURED[name]:
        assert np.isfinite(found[task.output]).all()
        assert task.value(exact, found) >= task.at_least, task.value(exact, found)
