"""The pass and the test in docs/adding-a-pass.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MISSES = {
    "agraph (int32[N] x) => (int32[N] z) { n = Neg(x)  z = Add(n, x) }": "the type is INT32",
    "agraph (float[N] x) => (float[N] n, float[N] z) { n = Neg(x)  z = Add(n, x) }": "'n' is needed elsewhere too",
}
"""Graphs and the reasons of their near misses on the page."""

PAGE = (Path(__file__).parents[2] / "docs/adding-a-pass.md").read_text()


def test_the_documented_pass(check_pass: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    source, other, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    module = ModuleType("compiler.passes.fuse_negation")
    exec(source, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    plain: dict[str, Any] = {}
    exec(other, plain)
    assert not check_pass(plain["drop_nothing"], "agraph (float[N] x) => (float[N] z) { z = Neg(x) }").fired
    names: dict[str, Any] = {}
    exec(test, names)
    names["test_add_of_a_negation"](check_pass)
    for text, reason in MISSES.items():
        report = check_pass(module.fuse_negation, text)
        assert [miss.reason for miss in report.missed] == [reason]
