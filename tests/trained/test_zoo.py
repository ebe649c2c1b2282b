"""Every trained model against onnxruntime: optimized and not, shapes pinned and symbolic, with one thread and two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from compiler.accuracy.reference import Reference
from compiler.zoo import Case
from compiler.zoo.drift import Drift, changed_facts
from compiler.zoo.facts_file import read_facts
from tests.trained.rewrite import cut_at_quantized, quantized, showing_quantized
from tests.trained.zoo import (
    ABSENT,
    FACTS,
    KNOWN,
    OTHERS,
    ROOT,
    TOLERANCE,
    cases,
    distances,
    entries,
    known_facts,
    outputs,
    pinned,
)

ENTRIES = entries()
QUANTIZED = [name for name in ENTRIES if quantized(onnx.load(ENTRIES[name].path))]
"""Models in which a rounding error can become a step of a quantized number."""
STEPS_APART = 1e-5
"""The allowed fraction of quantized numbers that differ by one step, because they lie between two."""


def test_there_are_other_models() -> None:
    if not (OTHERS / "INDEX.json").exists():
        pytest.skip(ABSENT)
    assert len(ENTRIES) > 1
    assert KNOWN.keys() <= ENTRIES.keys()


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.parent.name)
def test_the_facts_are_of_every_level(path: Path) -> None:
    """Facts of a missing level are not compared. The instructions for 8-bit products depend on the machine."""
    for name, by_shapes in read_facts(path).models.items():
        for shapes, facts in by_shapes.items():
            assert {level.partition("-")[0] for level in facts.levels} == {"scalar", "avx2", "avx512"}, (name, shapes)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_equals_onnxruntime(case: Case) -> None:
    outcome = case.check()
    assert outcome.ok, outcome.message
    assert outcome.facts is not None
    known = known_facts(case.entry.name, case.shapes)
    drifts = [str(Drift(case.entry.name, case.shapes, *each)) for each in changed_facts(known, outcome.facts)]
    assert not drifts, "\n".join([*drifts, "if these changes are right, record them: `make bless`"])


@pytest.mark.parametrize("name", ENTRIES)
def test_threads_change_no_bit(name: str) -> None:
    entry = ENTRIES[name]
    for case in entry.cases:
        for optimize in (True, False):
            one, two = outputs(pinned(entry, case), entry.inputs(case), optimize=optimize, threads=(1, 2))
            for output, value in one.items():
                assert value.tobytes() == two[output].tobytes(), f"{case.stem} {output}: another with two threads"


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_layers(name: str) -> None:
    """With onnxruntime's inputs, each quantized layer computes onnxruntime's outputs, but for a few single steps."""
    entry = ENTRIES[name]
    for case in entry.cases:
        model, inputs = pinned(entry, case), entry.inputs(case)
        shown = Reference(showing_quantized(model), optimize=False).run(inputs)
        wanted = {output: shown[output] for output in quantized(model)}
        given = {f"{output} given": value for output, value in wanted.items()}
        for optimize in (True, False):
            [found] = outputs(cut_at_quantized(model, wanted), {**inputs, **given}, optimize=optimize)
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
    """Two processes with different hash seeds write the same plans."""
    listed = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", HASHES]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        listed.append(done.stdout.splitlines())
    assert len(listed[0]) == 2 * len(ENTRIES)
    assert listed[0] == listed[1]
