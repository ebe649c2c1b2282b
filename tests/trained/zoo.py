"""The trained models of this repository, and those of another folder if it exists."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir

import compiler
import compiler.zoo.shapes
from compiler.accuracy.compare import Report, worst_of
from compiler.accuracy.precision import exact_outputs
from compiler.accuracy.verify import Judge
from compiler.accuracy.yardstick import MOST_ERROR
from compiler.zoo import Case
from compiler.zoo.baseline import Expectation, read_baseline
from compiler.zoo.facts import Facts
from compiler.zoo.facts_file import read_facts
from compiler.zoo.index import Entry, read_index
from compiler.zoo.outcome import SHAPES, Result, Shapes

ROOT = Path(__file__).parents[2]
OTHERS = Path(os.environ.get("ZOO", ROOT.parent / "shared/zoo"))
"""The folder of other models: the environment variable ZOO, or a folder beside the checkout."""
ABSENT = f"there are no other models in {OTHERS}: set ZOO to a folder of models with an INDEX.json"

BASELINE = Path(__file__).with_name("zoo.toml")
KNOWN = read_baseline(BASELINE)
"""The other models that do not equal onnxruntime's results."""
FACTS = [ROOT / "models/facts.toml", Path(__file__).with_name("facts.toml")]
"""The files of facts that must not drift, of the models of this repository and of the others."""
TOLERANCE = 1e-5
"""The largest allowed difference from onnxruntime's output, relative to its largest element."""

Array = np.ndarray[Any, Any]
Values = Mapping[str, Any]


def folders() -> list[Path]:
    """The folders of models that exist."""
    return [ROOT / "models", *([OTHERS] if (OTHERS / "INDEX.json").exists() else [])]


def entries() -> dict[str, Entry]:
    """Every model of these folders, by name."""
    return {entry.name: entry for folder in folders() for entry in read_index(folder)}


def cases() -> list[Case]:
    """Every model of these folders, with both kinds of shapes."""
    measures = {OTHERS: Path(__file__).with_name("measures.toml")}
    return [
        case
        for folder in folders()
        for case in compiler.zoo.cases(folder, shapes=SHAPES, baseline=BASELINE, measures=measures.get(folder))
    ]


@functools.cache
def known_facts(name: str, shapes: Shapes) -> Facts:
    """The recorded facts of a model."""
    return next(models[name][shapes] for models in (read_facts(path).models for path in FACTS) if name in models)


def exceeded(name: str, shapes: Shapes, reports: Sequence[Report]) -> str:
    """The problems of a model's comparisons with onnxruntime; empty if all are acceptable."""
    found = Result(worst_of(output.verdict for report in reports for output in report.outputs), worst(reports))
    line = line_of(name, shapes)
    return line.exceeded(found) if line else "" if found.verdict == "equal" else f"it is {found.verdict}"


def line_of(name: str, shapes: Shapes) -> Expectation | None:
    """The entry of a model in the baseline; `None` without one."""
    return KNOWN[name].expectations.get(shapes) if name in KNOWN else None


def worst(reports: Sequence[Report]) -> float:
    """The largest difference, in times of the tolerance."""
    return max(report.worst for report in reports)


def allowed(name: str) -> float:
    """The allowed difference between another device's outputs and onnxruntime's, relative to the largest element."""
    if line := line_of(name, "pinned"):
        return TOLERANCE * line.at_most
    entry = entries()[name]
    inputs = [entry.inputs(case) for case in entry.cases]
    exact = [exact_outputs(entry.path, each) for each in inputs]
    pairs = [(each, judge(name).reference.run(given)) for given, each in zip(inputs, exact, strict=True) if each]
    errors = [error for each, theirs in pairs for error in distances(theirs, each).values() if np.isfinite(error)]
    return max([TOLERANCE, *((1 + MOST_ERROR) * error for error in errors if error > TOLERANCE / 2)])


def pinned(entry: Entry, case: Path) -> onnx.ModelProto:
    """The model with the shapes of the case."""
    model = onnx_ir.load(entry.path)
    compiler.zoo.shapes.set_shapes(model, {name: array.shape for name, array in entry.inputs(case).items()})
    return onnx_ir.to_proto(model)


@functools.cache
def judge(name: str) -> Judge:
    """A judge that runs the model in onnxruntime and in double precision."""
    return Judge(entries()[name].path)


@functools.cache
def expected(name: str, case: Path) -> Values:
    """onnxruntime's outputs for a case."""
    return judge(name).reference.run(entries()[name].inputs(case))


def outputs(model: onnx.ModelProto, inputs: Values, *, optimize: bool, threads: Sequence[int] = (1,)) -> list[Values]:
    """The outputs of the plan with each number of threads."""
    plan = compiler.compile(model, compiler.Options(optimize=optimize))
    return [compiler.load(plan, threads=number).run(inputs) for number in threads]


def distances(found: Values, wanted: Values) -> dict[str, float]:
    """The largest difference of each output from the wanted one, relative to its largest element."""
    assert list(found) == list(wanted)
    return {name: _distance(found[name], wanted[name]) for name in wanted}


def _distance(found: Array, wanted: Array) -> float:
    assert found.shape == wanted.shape
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else np.inf
    assert np.isfinite(wanted).all()
    difference = np.abs(found.astype(np.float64) - wanted).max(initial=0)
    return float(difference / max(np.abs(wanted).max(initial=0), np.finfo(np.float32).tiny))
