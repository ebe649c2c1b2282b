"""The rounding errors of outputs as facts: the yardstick, the bounds, and what counts as a drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler.accuracy.verify import Judge
from compiler.accuracy.yardstick import Squares
from compiler.zoo.drift import changed_facts, renewed_facts
from compiler.zoo.facts import Facts, KnownFacts, joined
from compiler.zoo.facts_file import read_facts, write_facts
from compiler.zoo.rounding import Rounding, facts_of_roundings, rounding_of


def of_ratio(percent: float, count: int = 1000) -> Squares:
    """Errors of 1e-5 of onnxruntime's, and of so many percent of it."""
    return Squares(count * (percent * 1e-7) ** 2, count * 1e-5**2, count)


@pytest.mark.parametrize(
    ("percent", "count", "bound"),
    [
        (1, 1000, 150),
        (100, 1000, 150),
        (101, 1000, 200),
        (133, 1000, 200),
        (134, 1000, 300),
        (700, 1000, 1500),
        (100, 63, 300),
        (100, 64, 150),
        (150, 1, 500),
    ],
)
def test_a_bound_leaves_a_margin(percent: int, count: int, bound: int) -> None:
    facts = facts_of_roundings([Rounding(True, {"y": of_ratio(percent, count)})]).plan
    assert facts == {
        "yardstick": "double precision",
        "error_percent": {"y": percent},
        "error_at_most": {"y": bound},
    }


def test_the_errors_of_all_cases_count_together() -> None:
    small, large = (Rounding(True, {"y": of_ratio(percent)}) for percent in (100, 700))
    assert facts_of_roundings([small, large]).plan["error_percent"] == {"y": 500}
    noise = Rounding(False, {"y": of_ratio(900)})
    assert facts_of_roundings([small, noise]).plan == {
        **facts_of_roundings([small]).plan,
        "yardstick": "double precision in 1 of 2 cases",
    }
    assert facts_of_roundings([noise]).plan["yardstick"] == "reference noise"
    assert facts_of_roundings([Rounding(True, {})]) == Facts({})
    assert joined([Facts({"steps": {"Conv": 2}}), facts_of_roundings([small])]).plan == {
        "steps": {"Conv": 2},
        **facts_of_roundings([small]).plan,
    }


def errors(**percent: int) -> Facts:
    """The facts of a model with these errors of its outputs."""
    found = facts_of_roundings([Rounding(True, {name: of_ratio(each) for name, each in percent.items()})])
    return Facts({"status": "equal", **found.plan})


def test_only_an_error_beyond_its_bound_is_a_drift() -> None:
    known = errors(y=100)
    assert changed_facts(known, errors(y=1)) == changed_facts(known, errors(y=150)) == []
    assert changed_facts(known, errors(y=151)) == [
        ("error_percent", {"y": 100}, {"y": 151}),
        ("error_at_most", {"y": 150}, {"y": 300}),
    ]
    assert changed_facts(known, errors(y=100, z=20)) == [
        ("error_percent", {}, {"z": 20}),
        ("error_at_most", {}, {"z": 150}),
    ]
    assert changed_facts(known, Facts({"status": "equal"}))[-1] == ("error_at_most", {"y": 150}, {})


@pytest.mark.parametrize(
    ("measured", "kept"), [(90, errors(y=100)), (150, errors(y=100)), (151, errors(y=151)), (40, errors(y=100))]
)
def test_a_bound_stays_while_it_holds(measured: int, kept: Facts, tmp_path: Path) -> None:
    known = KnownFacts("cpu", {"model:0": {"pinned": errors(y=100)}})
    new = renewed_facts(known, {"model:0": {"pinned": errors(y=measured)}})
    assert new.models["model:0"]["pinned"].plan == kept.plan
    write_facts(tmp_path / "facts.toml", new)
    assert read_facts(tmp_path / "facts.toml") == new


def test_a_bound_that_allows_too_much_does_not_stay() -> None:
    known = KnownFacts("cpu", {"model": {"pinned": errors(y=1000)}})
    new = renewed_facts(known, {"model": {"pinned": errors(y=100)}})
    assert new.models["model"]["pinned"].plan == errors(y=100).plan


SUM = '<ir_version: 8, opset_import: ["" : 13]> m (float[8, 64] x, int64 n) => (float[8] y, int64 k) { %s k = Neg (n) }'


def measured(body: str, scale: float = 1.0) -> dict[str, Any]:
    """The facts of a model, whose output `y` has `scale` times the plan's errors."""
    model = onnx.parser.parse_model(SUM % body)
    inputs = {"x": np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32), "n": np.array(3)}
    given = Judge(model).given(inputs)
    found = compiler.load(compiler.compile(model)).run(inputs)
    if given.exact is not None:
        exact = given.exact["y"]
        found["y"] = (exact + scale * (found["y"] - exact)).astype(np.float32)
    return dict(facts_of_roundings([rounding_of(given, found, set())]).plan)


def test_double_precision_measures_the_errors_of_floats() -> None:
    body = "a = Constant <value_ints = [1]> ()  s = ReduceSum <keepdims = 0> (x, a)  y = Sin (s)"
    facts = measured(body, 1e6)
    assert facts["yardstick"] == "double precision"
    assert facts["error_percent"].keys() == facts["error_at_most"].keys() == {"y"}
    assert facts["error_percent"]["y"] > 10_000
    assert measured(body)["error_percent"]["y"] <= 300


def test_the_reference_noise_measures_a_quantized_model() -> None:
    body = """
        s = Constant <value = float {0.1}> ()  z = Constant <value = uint8 {128}> ()  a = Constant <value_ints = [1]> ()
        q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)  y = ReduceSum <keepdims = 0> (d, a)
    """
    assert measured(body)["yardstick"] == "reference noise"
