"""Passes on random graphs, trained models and networks: any passes and rules, in any order, keep the results.

On random graphs, each pass also reaches its fixpoint in one run. Hypothesis draws these graphs and the orders, and
shrinks an order that fails. Every run has the same examples. The environment variable FUZZ multiplies their number.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import compiler
from compiler import Options, lower
from compiler.accuracy.reference import Reference
from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model
from compiler.ir.graph import nodes_of
from compiler.ir.text import graph_text
from compiler.pipeline import passes
from compiler.plan.write import write
from compiler.rewrite import rule
from compiler.rewrite.report import PassReport
from compiler.zoo.index import Entry
from models.families import catalog
from models.families.exporting import export, files
from models.families.recipe import Recipe, call, floats
from tests.fuzz_bases import on_axes, on_codes, on_images
from tests.trained.rewrite import cut_at_quantized, quantized, showing_quantized
from tests.trained.zoo import entries, pinned

TOLERANCE = 1e-4
TIMES = int(os.environ.get("FUZZ", "1"))

Make = Callable[[random.Random], tuple[onnx.ModelProto, dict[str, Any]]]

MAKES: dict[Make, int] = {on_axes: 12, on_codes: 3, on_images: 1}
"""The kinds of graphs, and how frequent each is. Graphs of images take the most time."""
CHANCES = st.randoms(use_true_random=True)
"""The random numbers of a graph, from a seed."""
OPTIONAL = [step for step in passes(Options()) if not step.needed and step.name != "check_nodes"]
"""The passes that a user may choose, some of them more than once."""


def examples(number: int) -> settings:
    """The settings of a test with this number of examples."""
    count, slow = number * TIMES, [HealthCheck.too_slow]
    return settings(max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=slow)


@st.composite
def orders(draw: st.DrawFn) -> list[str]:
    """The names of some of the optional passes in any order."""
    names = draw(st.permutations([step.name for step in OPTIONAL]))
    return names[: draw(st.integers(1, len(names)))]


@contextmanager
def rules_in_any_order(chance: random.Random) -> Iterator[None]:
    """Passes try their rules in a random order, another one in each run."""
    driver = rule._Driver

    def shuffled(model: ir.Model, rules: rule._Rules, roots: Sequence[ir.Node], report: PassReport) -> rule._Driver:
        return driver(model, rule._Rules(chance.sample(rules.rules, len(rules.rules))), roots, report)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule, "_Driver", shuffled)
        yield


def run_in_order(model: ir.Model, order: list[str]) -> list[str]:
    """Runs each pass in order if its required facts hold at that point. Returns the names of these passes."""
    facts = {fact for step in passes(Options()) if step.needed for fact in step.ensures} | {"stored weights"}
    named = {step.name: step for step in OPTIONAL}
    done = []
    for step in (named[name] for name in order):
        if step.requires <= facts:
            step.run(model)
            facts = (facts | step.ensures) - step.ends
            done.append(step.name)
    return done


def loaded(proto: onnx.ModelProto) -> ir.Model:
    """A model after the passes that every compilation needs."""
    model = load_model(proto).model
    for step in passes(Options()):
        if step.needed:
            step.run(model)
    return model


def random_graph(chance: random.Random) -> tuple[Make, onnx.ModelProto, dict[str, Any]]:
    """A random graph, with the function that made it and its inputs. A failure shows the graph."""
    [make] = chance.choices(list(MAKES), list(MAKES.values()))
    proto, feeds = make(chance)
    note(onnx.printer.to_text(proto.graph))
    return make, proto, feeds


def results(plan: compiler.Plan, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of a plan on one thread."""
    return compiler.load(plan, threads=1).run(feeds)


def plan_of(model: ir.Model) -> compiler.Plan:
    """The plan of a model as the passes left it."""
    block, pool = lower.lower(model)
    return compiler.Plan(b"".join(write(block, pool)))


def close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Codes may differ by one; numbers by the tolerance, relative to the largest."""
    for name, wanted in expected.items():
        if wanted.dtype.kind in "iu":
            difference = np.abs(found[name].astype(np.int64) - wanted.astype(np.int64))
            assert difference.max(initial=0) <= 1
            continue
        largest = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(found[name], wanted, rtol=TOLERANCE, atol=TOLERANCE * largest)


def cut(entry: Entry) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model, cut at its quantized values, and inputs. Without cuts, a rounding error could change a code by one."""
    case = entry.cases[0]
    proto, feeds = onnx.load(entry.path), entry.inputs(case)
    names = quantized(proto)
    if not names:
        return proto, feeds
    shown = Reference(showing_quantized(proto), optimize=False).run(feeds)
    wanted = {name: shown[name] for name in names}
    return cut_at_quantized(pinned(entry, case), wanted), {**feeds, **{f"{name} given": wanted[name] for name in names}}


@examples(80)
@given(chance=CHANCES, order=orders())
def test_any_passes_and_rules_in_any_order_keep_the_results(chance: random.Random, order: list[str]) -> None:
    make, proto, feeds = random_graph(chance)
    expected = results(compiler.compile(proto, Options(optimize=False)), feeds)
    if make is on_axes:
        close(expected, Reference(proto, optimize=False).run(feeds))
    model = loaded(proto)
    with rules_in_any_order(chance):
        note(f"passes that ran: {run_in_order(model, order)}")
    assert violations(model) == []
    close(results(plan_of(model), feeds), expected)


def keeps_results_in_any_order(chance: random.Random, proto: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    """Runs some optional passes in a random order, and compares the plan's results with those of the plain plan."""
    model = loaded(proto)
    order = chance.sample([step.name for step in OPTIONAL], chance.randint(1, len(OPTIONAL)))
    with rules_in_any_order(chance):
        print(f"passes that ran: {run_in_order(model, order)}")  # a failure shows this
    expected = results(compiler.compile(proto, Options(optimize=False)), feeds)
    close(results(plan_of(model), feeds), expected)


@pytest.mark.parametrize("seed", range(2 * TIMES))
@pytest.mark.parametrize("name", entries())
def test_any_passes_and_rules_in_any_order_keep_the_results_of_a_trained_model(name: str, seed: int) -> None:
    keeps_results_in_any_order(random.Random(f"{name} {seed}"), *cut(entries()[name]))


ENCODER = Recipe(
    "torch_encoder",
    call("torch.nn.TransformerEncoderLayer", 16, 2, 24, batch_first=True),
    {"src": floats("batch", 5, 16)},
    ({"batch": 2}, {"batch": 3}),
)
NETWORKS = ["models_tc_resnet8", "models_dtln_spectrum", ENCODER.name]
"""Small networks of `models/families`: convolutions, and recurrent layers; and one with attention."""


@pytest.mark.parametrize("name", NETWORKS)
def test_any_passes_and_rules_in_any_order_keep_the_results_of_a_network(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    recipe = {**catalog.recipes(), ENCODER.name: ENCODER}[name]
    export(recipe, tmp_path)
    model, case, _ = files(recipe, tmp_path)
    with np.load(case) as arrays:
        feeds = dict(arrays)
    for seed in range(2 * TIMES):
        keeps_results_in_any_order(random.Random(f"{name} {seed}"), onnx.load(model), feeds)


@examples(80)
@given(chance=CHANCES)
def test_every_pass_reaches_its_fixpoint_in_one_run(chance: random.Random) -> None:
    model = load_model(random_graph(chance)[1]).model
    for step in passes(Options()):
        step.run(model)
        text = graph_text(model.graph)
        again = step.run(model)
        assert not again.changed, f"{step.name} fires again: {again.fired[:3]}"
        assert graph_text(model.graph) == text, f"{step.name} changes the graph again"


@examples(80)
@given(chance=CHANCES)
def test_every_node_has_its_types_and_shapes_after_every_pass(chance: random.Random) -> None:
    model = load_model(random_graph(chance)[1]).model
    known = False
    for step in passes(Options()):
        step.run(model)
        known |= "shapes" in step.ensures
        for node in nodes_of(model) if known else ():
            for value in node.outputs:
                place = f"{step.name}: {node.domain} {node.op_type}"
                assert value.type is not None and value.shape is not None, place
