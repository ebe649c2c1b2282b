"""Passes on graphs made at random: any of them in any order keep the results, and each reaches its fixpoint.

With FUZZ seeds, where that is set.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import compiler
from compiler import Options, lower
from compiler.accuracy.reference import Reference
from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model
from compiler.ir.graph import nodes_of
from compiler.ir.text import graph_text
from compiler.pipeline import passes
from compiler.plan.write import write
from compiler.rewrite.report import Pass
from tests.fuzz_bases import on_axes, on_codes, on_images
from tests.trained.zoo import entries

SEEDS = range(int(os.environ.get("FUZZ", "1")))
GRAPHS = {on_axes: 60, on_images: 4, on_codes: 12}
"""So many graphs of each kind for a seed."""
TOLERANCE = 1e-4
SMALL_MODELS = ("digits", "dtln_model_1", "super_resolution_pt", "tract_byte_sb_bidi_lstm")

Make = Callable[[random.Random], tuple[onnx.ModelProto, dict[str, Any]]]


def run_in_order(model: ir.Model, order: list[Pass]) -> list[str]:
    """Runs the passes whose required facts hold when their turn comes; gives their names."""
    facts = {fact for step in passes(Options()) if step.needed for fact in step.ensures} | {"stored weights"}
    done = []
    for step in order:
        if step.requires <= facts:
            step.run(model)
            facts = (facts | step.ensures) - step.ends
            done.append(step.name)
    return done


def needed(model: ir.Model) -> None:
    """Runs what every compilation needs."""
    for step in passes(Options()):
        if step.needed:
            step.run(model)


def plan_of(model: ir.Model) -> compiler.Plan:
    """The plan of a model as the passes left it."""
    block, pool = lower.lower(model)
    return compiler.Plan(write(block, pool))


def close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], told: str) -> None:
    """Codes may differ by one; numbers by the tolerance, relative to the largest."""
    for name, wanted in expected.items():
        if wanted.dtype.kind in "iu":
            difference = np.abs(found[name].astype(np.int64) - wanted.astype(np.int64))
            assert difference.max(initial=0) <= 1, told
            continue
        largest = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(found[name], wanted, rtol=TOLERANCE, atol=TOLERANCE * largest, err_msg=told)


def shuffled(chance: random.Random) -> list[Pass]:
    """Some of the optional passes in any order, some of them more than once."""
    optional = [step for step in passes(Options()) if not step.needed and step.name != "check_nodes"]
    return chance.sample(optional, chance.randint(1, len(optional)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_any_passes_in_any_order_keep_the_results(make: Make, seed: int) -> None:
    for number in range(GRAPHS[make]):
        chance = random.Random(f"{seed} {number}")
        proto, feeds = make(chance)
        expected = compiler.load(compiler.compile(proto, Options(optimize=False)), threads=1).run(feeds)
        if make is on_axes:
            close(expected, Reference(proto, optimize=False).run(feeds), f"graph {number}, not optimized")
        model = load_model(proto).model
        needed(model)
        names = run_in_order(model, shuffled(chance))
        assert violations(model) == [], f"graph {number}, passes {names}"
        close(compiler.load(plan_of(model), threads=1).run(feeds), expected, f"graph {number}, passes {names}")


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_any_passes_in_any_order_keep_the_results_of_a_trained_model(name: str) -> None:
    if name not in entries():
        pytest.skip("shared/zoo is not there")
    entry, chance = entries()[name], random.Random(name)
    feeds = entry.inputs(entry.cases[0])
    expected = compiler.load(compiler.compile(entry.path, Options(optimize=False)), threads=1).run(feeds)
    for _ in range(3):
        model = load_model(Path(entry.path)).model
        needed(model)
        names = run_in_order(model, shuffled(chance))
        close(compiler.load(plan_of(model), threads=1).run(feeds), expected, f"passes {names}")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_every_pass_reaches_its_fixpoint_in_one_run(make: Make, seed: int) -> None:
    for number in range(GRAPHS[make]):
        model = load_model(make(random.Random(f"{seed} {number}"))[0]).model
        for step in passes(Options()):
            step.run(model)
            text = graph_text(model.graph)
            again = step.run(model)
            assert not again.changed, f"graph {number}: {step.name} fires again: {again.fired[:3]}"
            assert graph_text(model.graph) == text, f"graph {number}: {step.name} changes the graph again"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_every_node_has_its_types_and_shapes_after_every_pass(make: Make, seed: int) -> None:
    for number in range(GRAPHS[make]):
        model = load_model(make(random.Random(f"{seed} {number}"))[0]).model
        known = False
        for step in passes(Options()):
            step.run(model)
            known |= "shapes" in step.ensures
            for node in nodes_of(model) if known else ():
                for value in node.outputs:
                    place = f"graph {number}, {step.name}: {node.domain} {node.op_type}"
                    assert value.type is not None and value.shape is not None, place
