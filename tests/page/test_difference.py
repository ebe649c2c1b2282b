"""The page of a difference: its data equal the difference, and Chromium shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.numpy_helper
import pytest

import compiler
from compiler.diff import Difference, difference
from compiler.page.difference import difference_data
from compiler.page.write import html_of
from tests.browser import Page
from tests.page.compiled import MODEL, model
from tests.page.elements import data_in
from tests.page.looking import NEEDS_CHROMIUM, check_widths, rows

X = {"x": np.ones((2, 4), np.float32), "c": np.array(True)}
OTHER = MODEL.replace("b = {1, 1", "b = {1, 3").replace("Identity (x)", "Neg (x)")


def made(*, plans: bool = False) -> tuple[Difference, Any]:
    """A difference with a run, and the data of its page."""
    found = difference(model(), model(OTHER), inputs=X, plans=plans)
    data = difference_data("old.onnx", "new.onnx", found, "They differ.")
    assert data_in(html_of(data, "difference")) == data
    return found, data


def test_the_data_are_those_of_the_difference() -> None:
    found, data = made()
    assert (data["kind"], data["title"], data["names"]) == ("model", "old.onnx and new.onnx", ["old.onnx", "new.onnx"])
    assert [(each["change"], each["op"]) for each in data["nodes"]] == [(each.change, each.op) for each in found.nodes]
    neg = data["places"][next(each["place"] for each in data["nodes"] if each["op"] == "Identity")]
    assert (neg["module"], neg["source"]) == ("body", "net.py:7 in forward")
    [constant] = data["constants"]
    assert (constant["name"], constant["max_abs"]) == ("b", 2.0)
    assert found.numbers is not None
    assert [each["max_abs"] for each in data["numbers"]["outputs"]] == [each.max_abs for each in found.numbers.outputs]
    first = data["numbers"]["values"][data["numbers"]["first"]]
    assert found.numbers.first is not None and first["name"] == found.numbers.first.output.name


def test_numbers_that_are_not_finite_are_left_out() -> None:
    infinite = model()
    infinite.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.full(4, np.inf, np.float32), "b"))
    found = difference(model(), infinite, inputs=X)
    data = difference_data("a", "b", found, "")
    assert data["constants"][0]["max_abs"] is None and data["numbers"]["outputs"][0]["max_abs"] is None
    assert data_in(html_of(data, "difference")) == data


@pytest.fixture
def page(tab: Page, tmp_path: Path) -> Page:
    """The page of the difference of two models in the tab."""
    path = tmp_path / "page.html"
    path.write_text(html_of(made()[1], "difference"))
    tab.resize(1600, 900)
    tab.open(path.as_uri())
    return tab


@NEEDS_CHROMIUM
def test_the_page_shows_the_numbers(page: Page) -> None:
    headings = page.value("[...document.querySelectorAll('h2')].map((each) => each.textContent)")
    assert headings == ["Results on the same inputs", "Operators", "Nodes by module", "Constants"]
    assert rows(page, "1 constant that differs") == [["b", "≠changed", "float32 [4]16 B", "float32 [4]16 B", "2.00"]]
    [output] = rows(page, "Outputs")
    assert output[:4] == ["y", "different", "float32 [2, 4]", "2.00"]
    assert ["Neg", "0", "1", "1", "0", "0"] in rows(page, "2 operators of nodes")
    page.value("document.querySelector('.folds button').click()")
    items = page.value("[...document.querySelectorAll('.step-item')].map((each) => each.textContent)")
    assert any("removed" in item and "net.py:7 in forward, Identity(same)" in item for item in items)


@NEEDS_CHROMIUM
def test_every_width_fits_and_axe_finds_nothing_serious(tab: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    data = made(plans=True)[1]
    path.write_text(html_of(data, "difference"))
    check_widths(tab, path.as_uri(), "document.querySelectorAll('.folds button:first-child').forEach((b) => b.click())")
    [size] = data["facts"]
    assert rows(tab, "1 fact that differs") == [["plan bytes", f"{size['before']:,}", f"{size['after']:,}"]]


@NEEDS_CHROMIUM
def test_equal_models_have_a_page_without_tables(tab: Page, tmp_path: Path) -> None:
    plan = compiler.compile(model())
    path = tmp_path / "page.html"
    path.write_text(html_of(difference_data("a", "b", difference(plan, plan), "a and b are equal."), "difference"))
    tab.open(path.as_uri())
    shown = tab.value("document.querySelector('#view').textContent")
    assert " ".join(shown.split()) == "a and b a and b are equal."
