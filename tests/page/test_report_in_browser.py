"""The page of a compilation in Chromium: its numbers, its folded graph and passes, its keys, widths and colors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler.page.write import html_of
from tests.browser import Page
from tests.page.compiled import MODEL, data_of, model
from tests.page.looking import NEEDS_CHROMIUM, check_widths, failures, focus, rows

pytestmark = NEEDS_CHROMIUM

HOSTILE = "<img src=x onerror=hacked=1>"
OPEN_ALL = "document.querySelectorAll('.folds button:first-child').forEach((button) => button.click())"


@pytest.fixture(scope="module")
def data() -> Any:
    """The data of a compilation without a run."""
    return data_of()


@pytest.fixture(scope="module")
def file(data: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a compilation without a run."""
    path = tmp_path_factory.mktemp("report") / "page.html"
    path.write_text(html_of(data, "report"))
    return path


def texts(page: Page, selector: str) -> list[str]:
    """The texts of elements."""
    return list(page.value(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)"))


def settle(page: Page) -> None:
    """Wait until events of the page have been handled."""
    page.value("new Promise((done) => setTimeout(done))")


def test_the_numbers_are_those_of_the_data(page: Page, data: Any) -> None:
    assert texts(page, "header p") == [data["summary"]] and texts(page, "h1") == ["m.onnx"]
    headings = ["Plan at the level ", "Work and memory of the steps", "Graph by module", "Passes"]
    found = texts(page, "h2")
    assert [found[0].startswith(headings[0]), *found[1:]] == [True, *headings[1:]] and found == texts(page, "nav a")
    assert texts(page, "[data-fact=plan_bytes] dd") == [f"{data['facts']['plan']['plan_bytes'] / 1e3:.2f} kB"]
    [gemm] = [row for row in rows(page, "Work by layer") if row[0] == "body.linear"]
    place = data["profile"]["steps"]["op"].index("Gemm")
    assert data["profile"]["steps"]["operations"][place] == 64
    assert gemm == ["body.linear", "64", "", "100 %", f"{data['profile']['steps']['alive_bytes'][place]} B", "1"]
    values = page.value("[...document.querySelectorAll('.tabular tbody td[data-value]')].map((td) => td.dataset.value)")
    assert "64" in values
    peak = max(each for each in data["profile"]["steps"]["alive_bytes"] if each is not None)
    assert texts(page, "figcaption")[0].startswith(
        f"Upper bound of the memory over the stepsThe peak is {peak} B in step"
    )


def test_each_pass_shows_what_it_did_and_where(page: Page, data: Any) -> None:
    active = [each for each in data["passes"] if each["fired"] or each["missed"]]
    assert texts(page, ".passes > li > details > summary .path") == [each["name"] for each in active]
    [found] = [text for text in texts(page, ".passes > li > details > summary") if "drop_identities" in text]
    assert found == "drop_identitiesnodes dropped: 17 → 6 nodes250 ms"
    page.value("document.querySelector('[data-pass=drop_identities] > summary').click()")
    settle(page)
    [row] = rows(page, "1 place")
    assert row == ["bodyBody", "net.py:7 in forward", "1", "Identity(same)"]
    summary = texts(page, "[data-pass=drop_identities] .groups-of-pass summary")
    assert summary == ["1 × DropIdentity"]
    idle = {each["name"] for each in data["passes"]} - {each["name"] for each in active}
    assert f"{len(idle)} other passes changed nothing" in texts(page, "summary")


def test_the_graph_is_a_tree_of_modules(page: Page) -> None:
    assert texts(page, ".module summary") == ["body.linearLinear1 step64 ops"]
    assert "step-1" not in page.value("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    page.value("document.querySelector('.folds button').click()")
    [first] = [text for text in texts(page, ".step-item") if text.startswith("1Gemm")]
    assert "reads%0:xfloat32 [2, 4], input" in first and "net.py:8 in forward" in first
    page.value("document.querySelectorAll('.folds button')[1].click()")
    assert page.value("document.querySelectorAll('.module details[open]').length") == 0


def test_a_link_leads_to_a_step_and_to_a_module(page: Page, file: Path) -> None:
    page.value("document.querySelector('.step-item a[href=\"#step-1\"]').click()")
    settle(page)
    assert page.value("document.activeElement.id") == "step-1" and focus(page).startswith("1Gemm")
    for path in ("body.linear", "body.linear.gone", "body"):
        page.open(f"{file.as_uri()}#module={path}")
        assert focus(page).startswith("body.linear") and page.value("document.activeElement.tagName") == "SUMMARY"
    for place in ("#step-99", "#module=%E0%A4%A", "#module=gone", "#section-2"):
        page.open(file.as_uri() + place)
        assert not failures(page)


def test_the_keys_open_what_is_folded(page: Page) -> None:
    page.value("document.querySelector('.module summary').focus()")
    page.press("Enter")
    settle(page)
    assert page.value("document.activeElement.parentElement.open")
    page.press("Tab")
    assert page.value("document.activeElement.matches('.step-item a, summary, button')")


def test_a_measured_run_has_times_and_the_comparison(tab: Page, tmp_path: Path) -> None:
    data = data_of(is_run=True)
    path = tmp_path / "page.html"
    path.write_text(html_of(data, "report"))
    tab.resize(1600, 900)
    tab.open(path.as_uri())
    assert "Verification" in texts(tab, "h2") and "Time and memory of the steps" in texts(tab, "h2")
    [output] = rows(tab, "Outputs and their worst differences")
    assert output[:3] == ["y", "equal", "float32 [2, 4]"]
    steps = data["profile"]["steps"]
    times = tab.value(
        "[...document.querySelectorAll('.tabular tbody tr td:nth-child(2)')].map((td) => td.dataset.value)"
    )
    gemm = 1e3 * steps["seconds"][steps["op"].index("Gemm")] / 10
    assert any(value and float(value) == pytest.approx(gemm) for value in times)
    assert "With the inputs of ones.npz" in texts(tab, "section p")
    check_widths(tab, path.as_uri(), OPEN_ALL)


def test_dimensions_without_a_size_leave_out_what_is_unknown(tab: Page, tmp_path: Path) -> None:
    text = MODEL.replace("[2, 4]", "[n, 4]")
    path = tmp_path / "page.html"
    path.write_text(html_of(data_of(proto=model(text)), "report"))
    tab.open(path.as_uri())
    assert any("The dimension n may have any size" in each for each in texts(tab, "section p"))
    assert texts(tab, ".module summary") == ["body.linearLinear1 step"]
    assert not texts(tab, "figure") and not texts(tab, ".groups") and not failures(tab)


def test_every_width_fits_and_axe_finds_nothing_serious(tab: Page, file: Path) -> None:
    check_widths(tab, file.as_uri(), OPEN_ALL)


def test_names_are_never_parts_of_the_page(tab: Page, tmp_path: Path) -> None:
    proto = model(MODEL)
    for node in proto.graph.node:
        node.name = HOSTILE
    proto.graph.output[0].name = proto.graph.node[-1].output[0] = HOSTILE
    path = tmp_path / "page.html"
    path.write_text(html_of(data_of(title=HOSTILE, proto=proto), "report"))
    tab.open(path.as_uri())
    tab.value(OPEN_ALL)
    assert texts(tab, "h1") == [HOSTILE] and any(HOSTILE in text for text in texts(tab, ".nodes li"))
    assert tab.value("typeof hacked") == "undefined" and not failures(tab)
    requested = {each["request"]["url"] for each in tab.events("Network.requestWillBeSent")}
    assert requested <= {path.as_uri(), "about:blank", "data:,"}
