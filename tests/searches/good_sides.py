"""The good sides of the searches: a plan and facts of the model, before something breaks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import compiler
from compiler.bisect.good import GoodFacts, GoodPlan
from compiler.bisect.subject import Subject, facts_together
from compiler.zoo.facts import Facts
from compiler.zoo.index import Entry
from tests import broken_passes

BASE = compiler.Options(dims={"n": 2})
X = np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32)


def subject(**options: Any) -> Subject:
    """The model of `broken_passes`, for two rows."""
    return Subject([broken_passes.model()], BASE, 1, **options)


@cache
def good_plan() -> GoodPlan:
    """A plan that no broken pass has made. The first call must come before something breaks."""
    return GoodPlan(compiler.compile(broken_passes.model(), BASE), "old.plan")


@cache
def good_facts() -> GoodFacts:
    """The facts of this plan."""
    return facts_with()


def facts_with(**of_level: Any) -> GoodFacts:
    """The facts of the plan, with other facts of this processor's level."""
    found = facts_together(subject().whole())
    levels = {name: {**facts, **of_level} for name, facts in found.levels.items()}
    return GoodFacts(Facts(found.plan, levels), "facts.toml", Entry("m", Path("m.onnx"), ()))
