"""The search for a wrong pass with an older plan, whose results replace onnxruntime's."""

from __future__ import annotations

import sys

import pytest

from compiler.bisect.error import find_error
from tests import broken_passes
from tests.searches.good_sides import X, good_plan


def test_equal_results() -> None:
    found = find_error(broken_passes.model(), {"x": X}, dims={"n": 2}, good=good_plan().plan)
    assert found.report.ok
    assert (found.culprit, found.step) == (None, None)


def test_onnxruntime_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    found = find_error(broken_passes.model(), {"x": X}, dims={"n": 2}, good=good_plan().plan)
    assert found.culprit is not None and found.step is not None
    assert found.culprit.name == "merge_reshapes"
    assert "Add(shift)" in found.step.origin


def test_a_wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    found = find_error(broken_passes.model(), {"x": X}, good=good_plan().plan)
    assert found.culprit is None and found.step is not None
    assert not found.report.ok
