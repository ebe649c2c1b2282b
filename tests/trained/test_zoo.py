"""Every trained model against onnxruntime: optimised and not, shapes pinned and symbolic, with one thread and two."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from compiler.zoo import Entry
from tests.trained.rewrite import cut_at_quantised, in_double_precision, quantised, showing_quantised
from tests.trained.zoo import ABSENT, OTHERS, ROOT, distances, entries, expected, outputs, pinned, reference, symbolic

ENTRIES = entries()
TOLERANCE = 1e-5
"""What an output may differ by from onnxruntime's, as a part of its largest element."""
ROUNDING = {"basic_pitch_nmp": 2e-4, "ch_mobile_v11_det": 1e-4, "yolox_nano": 2e-5}
"""Models in which rounding errors grow, and what they are allowed: see `test_rounding`."""
QUANTISED = {"mobilenetv2_int8_maui": 0.05}
"""Models in which a rounding error can become a step of a quantised number: see `test_quantised_layers`."""
TIMES_AS_FAR = 4
"""How much further from the answer in double precision than onnxruntime we may be: a convolution after Winograd has
about four times the error of one tap by tap."""
STEPS_APART = 1e-5
"""The part of all quantised numbers that may be a step apart, those that lie between two."""


def test_there_are_other_models() -> None:
    if not (OTHERS / "INDEX.json").exists():
        pytest.skip(ABSENT)
    assert len(ENTRIES) > 1
    assert {*ROUNDING, *QUANTISED} <= ENTRIES.keys()


@pytest.mark.parametrize("shapes", [pinned, symbolic], ids=lambda shapes: shapes.__name__)
@pytest.mark.parametrize("name", ENTRIES)
def test_equals_onnxruntime(name: str, shapes: Callable[[Entry, Path], onnx.ModelProto]) -> None:
    entry = ENTRIES[name]
    tolerance = (ROUNDING | QUANTISED).get(name, TOLERANCE)
    for case in entry.cases:
        for optimize in (True, False):
            one, two = outputs(shapes(entry, case), entry.inputs(case), optimize=optimize, threads=(1, 2))
            for output, value in one.items():
                assert value.dtype == expected(name, case)[output].dtype
                assert value.tobytes() == two[output].tobytes(), f"{case.stem} {output}: another with two threads"
            for output, distance in distances(one, expected(name, case)).items():
                assert distance <= tolerance, f"{case.stem} {output}, optimize={optimize}"


@pytest.mark.parametrize("name", [name for name in ROUNDING if name in ENTRIES])
def test_rounding(name: str) -> None:
    """What is computed in double precision is what both mean, and nearly as far from both."""
    entry = ENTRIES[name]
    ours, theirs = [], []
    for case in entry.cases:
        inputs, model = entry.inputs(case), pinned(entry, case)
        wide = {key: array.astype(np.float64) if array.dtype == np.float32 else array for key, array in inputs.items()}
        [true] = outputs(in_double_precision(model), wide, optimize=False)
        assert {value.dtype for value in true.values()} == {np.dtype(np.float64)}
        for optimize in (True, False):
            ours += distances(outputs(model, inputs, optimize=optimize)[0], true).values()
            theirs += distances(expected(name, case, optimize), true).values()
    assert TOLERANCE / 2 < max(theirs) < ROUNDING[name], "its rounding errors do not grow so"
    assert max(ours) <= TIMES_AS_FAR * max(theirs)


@pytest.mark.parametrize("name", [name for name in QUANTISED if name in ENTRIES])
def test_quantised_layers(name: str) -> None:
    """Each layer, given the quantised numbers that onnxruntime has before it, gives those that it has after it."""
    entry = ENTRIES[name]
    for case in entry.cases:
        model, inputs = pinned(entry, case), entry.inputs(case)
        shown = type(reference(name))(showing_quantised(model), optimize=False).run(inputs)
        wanted = {output: shown[output] for output in quantised(model)}
        given = {f"{output} given": value for output, value in wanted.items()}
        for optimize in (True, False):
            [found] = outputs(cut_at_quantised(model, wanted), {**inputs, **given}, optimize=optimize)
            steps = np.concatenate([(found[output].astype(int) - wanted[output]).ravel() for output in wanted])
            assert np.abs(steps).max() <= 1
            assert np.count_nonzero(steps) <= STEPS_APART * steps.size
            ends = {output: value for output, value in found.items() if output not in wanted}
            assert max(distances(ends, {output: shown[output] for output in ends}).values()) <= TOLERANCE


HASHES = """
import compiler, hashlib
from tests.trained.zoo import entries
for name, entry in entries().items():
    for optimize in (True, False):
        plan = compiler.compile(entry.path, compiler.Options(optimize=optimize))
        print(name, optimize, hashlib.sha256(plan.data).hexdigest())
"""


def test_plans_are_the_same_bytes_every_time() -> None:
    """In two processes, whose sets are in different orders."""
    listed = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", HASHES]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        listed.append(done.stdout.splitlines())
    assert len(listed[0]) == 2 * len(ENTRIES)
    assert listed[0] == listed[1]
