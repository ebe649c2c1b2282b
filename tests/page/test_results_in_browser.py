"""The page in Chromium: what it shows, its keys, its widths and colors, and what a reader without eyes gets of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.page.history import Run
from compiler.page.results import page_data
from compiler.page.write import html_of
from tests.browser import Page
from tests.page.looking import NEEDS_CHROMIUM, check_widths, failures, focus, rows
from tests.zoo.lines import check, ended, output, profile, refused, times

pytestmark = NEEDS_CHROMIUM

OLD = [check("alpha", plan={"plan_bytes": 4_000_000}), check("gone"), *times("alpha", 60.0)]
NEW = [
    check("alpha", outputs=[output("y", 0.25), output("z", 1234.5, "equal", 2e-6)], tags=("audio", "small")),
    profile("alpha"),
    *times("alpha", 61.0),
    check("beta", "different", 812.5, ok=False, tags=("vision",), remarks=["io: y: difference 8.1e-03"]),
    refused("gamma", tags=("vision", "3d")),
    ended("delta"),
    check("alpha", "uncertain", 2.0, shapes="unpinned"),
    check("<img src=x onerror=hacked=1>", tags=("<b>",), remarks=["</li><script>hacked = 1</script>"]),
]
HOSTILE = "<img src=x onerror=hacked=1>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two files of results."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(html_of(page_data("Zoo", [Run("old", OLD), Run("new", NEW)])))
    return path


def go(page: Page, model: str) -> None:
    """Open the view of a model by its link."""
    page.value(f"[...document.querySelectorAll('#grid a')].find((a) => a.textContent === {json.dumps(model)}).click()")
    page.value("new Promise((done) => setTimeout(done))")


def shown(page: Page) -> list[str]:
    """The names of the models that the grid shows."""
    return list(
        page.value("[...document.querySelectorAll('#grid tbody tr:not([hidden]) a')].map((a) => a.textContent)")
    )


def test_the_cells_have_the_numbers_of_the_file(page: Page) -> None:
    found = {row[0].partition("audio")[0]: row for row in rows(page, "The models")}
    assert list(found) == ["alpha", "betavision", "gammavision3d", "delta", f"{HOSTILE}<b>", "gone"]
    numbers = ["0.500 ×", "4.73 MB", "295 kB", "51.4 M", "10.0 ms", "61 %", "1.0 s"]
    assert found["alpha"][1:] == ["acceptable: uncertain", *["equal"] * 4, *["uncertain"] * 4, *numbers]
    assert found["betavision"][1:7] == ["not acceptable: different", *["different"] * 4, "not checked"]
    assert found["gammavision3d"][1:3] == ["acceptable: refused (CC0301)", "refused"]
    assert found["gammavision3d"][10:] == [*["–"] * 6, "1.0 s"]
    assert found["delta"][1:5] == ["not acceptable: crashed", "equal", "crashed", "crashed"]
    assert found["gone"][1:4] == ["missing", "missing", "missing"]


def test_the_raw_numbers_of_the_cells_equal_the_results(page: Page) -> None:
    facts = {"share": 0.5, "plan_bytes": 4_725_000, "peak_bytes": 295_232, "operations": 51_420_672, "percent": 61}
    cells = "document.querySelector(`#grid tbody tr td.${key}`).dataset.value"
    for key, value in facts.items():
        assert float(page.value(cells.replace("${key}", key))) == value
    lines = page.value(
        "[...document.querySelectorAll('#grid tbody tr:first-child svg[role=img]')].map((s) => s.ariaLabel)"
    )
    assert lines[:2] == ["0.500 × to 0.500 × in 2 runs", "4.00 MB to 4.73 MB in 2 runs"]


def test_the_view_has_the_numbers_of_the_file(page: Page) -> None:
    go(page, "alpha")
    assert page.value("document.title") == "alpha – Zoo"
    heads = page.value("[...document.querySelectorAll('#view h2')].map((h) => h.textContent)")
    assert heads == ["pinned, cpu", "unpinned, cpu"]
    assert rows(page, "Variants")[0] == ["optimized, 1 thread", "equal", "0.500 ×", "0.3 s"]
    first = ["y", "equal", "float32 [8, 10]", "2.5e−6", "1.0e−5", "–", "–", *["0.250 ×"] * 4]
    assert rows(page, "Outputs") == [
        first,
        ["z", "equal", "float32 [8, 10]", "0.0123", "1.0e−5", "2.0e−6", "2.0e−6", *["1,230 ×"] * 4],
    ]
    facts = page.value(
        "Object.fromEntries([...document.querySelectorAll('[data-fact]')].slice(0, 10)"
        ".map((f) => [f.dataset.fact, f.lastChild.textContent]))"
    )
    assert facts == {
        "plan_bytes": "4.73 MB",
        "constants": "2",
        "constant_bytes": "4.00 MB",
        "operations": "51,420,672",
        "host_steps": "1",
        "peak_bytes": "295 kB",
        "packed_bytes": "4.20 MB",
        "unpacked_bytes": "512 B",
        "block": "8",
        "time": "61 % ± 1 %",
    }
    forms = "2 × direct, in blocks1 × Winograd F(2, 3)"
    assert rows(page, "Steps")[0] == ["Conv", "3", "0", forms]
    assert rows(page, "Rewrites")[0] == ["fuse_epilogues", "3", "3 × fuse Conv + Relu"]
    assert [row[0] for row in rows(page, "Results by file")] == ["old", "new"]
    assert rows(page, "Results by file")[0][2] == "4.00 MB"


def test_the_time_of_the_steps_is_grouped(page: Page) -> None:
    go(page, "alpha")
    assert rows(page, "Time by layer") == [
        ["head", "7.00 ms", "", "70.0 %", "50.0 %", "325 M", "295 kB", "3"],
        ["stem", "3.00 ms", "", "30.0 %", "50.0 %", "150 M", "100 kB", "1"],
    ]
    page.value("document.querySelector('.groups input[value=operator]').click()")
    assert [row[:2] for row in rows(page, "Time by operator")] == [
        *(["Conv", "8.00 ms"], ["Gemm", "1.50 ms"], ["If", "500 µs"]),
    ]
    page.value("document.querySelector('.groups input[value=step]').click()")
    inner = rows(page, "Time by step")[2]
    assert inner[:3] == ["3", "· Gemmon the host: by nature", "1.50 ms"]
    assert inner[-1] == "Gemm(node_Gemm), head, net.py:7"
    plot = "document.querySelector('.area')"
    text = "Memory of a run over its 4 steps. The peak is 295 kB in step 2, If of head."
    assert (page.value(f"{plot}.role"), page.value(f"{plot}.ariaLabel")) == ("img", text)
    assert "The line in a bar is the time that the peaks of the machine allow, 100 GFLOP/s and 10.0 GB/s" in page.value(
        "document.querySelector('#view').textContent"
    )


def test_a_reason_is_shown(page: Page) -> None:
    go(page, "gamma")
    text = page.value("document.querySelector('.remarks').textContent")
    assert text == "3-D convolution is not supported (kernel 3×3×3) (CC0301)Help: use 2-D operatorsall variants"
    page.press("Escape")
    go(page, "delta")
    text = page.value("document.querySelector('.remarks').textContent")
    variants = "optimized, 2 threads; plain, 1 thread; plain, 2 threads"
    assert text == f"it crashed with SIGSEGV (segmentation fault); last phase: run: io{variants}"


def test_nothing_is_loaded_and_nothing_fails(page: Page, file: Path) -> None:
    for model in ("alpha", "beta", "gamma", "delta", HOSTILE, "gone"):
        go(page, model)
        assert page.value("document.querySelector('#view h1').textContent") == model
        page.press("Escape")
    assert page.value("typeof hacked") == "undefined"
    requested = {each["request"]["url"] for each in page.events("Network.requestWillBeSent")}
    assert requested <= {file.as_uri(), "about:blank", "data:,"}
    assert not failures(page)


def test_the_filters_choose_models(page: Page) -> None:
    choices = page.value("[...document.querySelectorAll('#statuses label')].map((l) => l.textContent)")
    assert choices == [
        "all6",
        "not acceptable2",
        "missing1",
        "equal1",
        "uncertain1",
        "different1",
        "refused1",
        "crashed1",
    ]
    said = "document.querySelector('#count').textContent"
    assert page.value(said) == "6 models"
    page.value("document.querySelector('[value=\"not acceptable\"]').click()")
    assert (shown(page), page.value(said)) == (["beta", "delta"], "2 of 6 models")
    page.value("document.querySelector('[value=all]').click()")
    page.press("/", "/")
    for letter in "vis":
        page.press(letter, letter)
    assert shown(page) == ["beta", "gamma"]
    change = (
        "const s = document.querySelector('#tag'); s.value = '3d'; s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.value(f"(() => {{ {change} }})()")
    assert shown(page) == ["gamma"]


def test_another_kind_of_check_has_its_numbers(page: Page) -> None:
    choice = "document.querySelector('#task')"
    page.value(f"{choice}.selectedIndex = 1; {choice}.dispatchEvent(new Event('change'))")
    assert rows(page, "The models")[0][10:12] == ["2.00 ×", "4.73 MB"]
    assert "unpinned, cpu" in page.value("document.querySelector('#grid caption').textContent")


def test_the_keys_reach_everything(page: Page) -> None:
    stops = []
    for _ in range(6):
        page.press("Tab")
        stops.append(
            page.value("document.activeElement.id || document.activeElement.name || document.activeElement.textContent")
        )
    assert stops[:5] == ["status", "text", "tag", "task", "alpha"], "the table is one stop"
    page.value("document.querySelector('#grid tbody a').focus()")
    page.press("ArrowDown")
    assert focus(page) == "beta"
    page.press("ArrowRight")
    assert focus(page) == "not acceptable: different"
    outline = page.value(
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
    )
    assert outline == "solid2px"
    page.press("Enter")
    page.value("new Promise((done) => setTimeout(done))")
    assert focus(page) == "beta" and page.value("document.activeElement.tagName") == "H1"
    page.press("Escape")
    page.value("new Promise((done) => setTimeout(done))")
    assert focus(page) == "not acceptable: different", "where it was before"
    page.press("End", modifiers=2)
    assert focus(page) == "–"
    page.press("Home", modifiers=2)
    assert focus(page) == "Model"
    page.press("Enter")
    assert page.value("document.querySelector('#grid th').ariaSort") == "ascending"
    assert shown(page) == [HOSTILE, "alpha", "beta", "delta", "gamma", "gone"]
    page.press("Enter")
    assert page.value("document.querySelector('#grid th').ariaSort") == "descending" and shown(page)[0] == "gone"


def test_an_address_leads_to_a_model(tab: Page, file: Path) -> None:
    tab.open(f"{file.as_uri()}#model=beta")
    assert tab.value("document.querySelector('#view h1').textContent") == "beta"
    tab.open(f"{file.as_uri()}#model=%E0%A4%A")
    assert not tab.value("document.querySelector('#overview').hidden")


def test_the_table_is_a_grid_with_headings(page: Page) -> None:
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node["ignored"]:
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert roles["grid"] == ["The models and their checks. The numbers are those of pinned, cpu."]
    assert [name.split()[0] for name in roles["rowheader"]] == ["alpha", "beta", "gamma", "delta", "<img", "gone"]
    assert "Difference of the tolerance" in roles["columnheader"]
    assert "4.00 MB to 4.73 MB in 2 runs" in roles["image"]
    assert roles["heading"] == ["Zoo"] and roles["search"] == ["Models"]


@pytest.mark.parametrize("place", ["", "#model=alpha", "#model=beta", "#model=gamma"])
def test_every_width_fits_and_axe_finds_nothing_serious(tab: Page, file: Path, place: str) -> None:
    check_widths(tab, file.as_uri() + place)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 300 models in two files of results."""
    lines = [check(f"model_{number:03d}", share=number / 100, tags=(f"family {number % 7}",)) for number in range(300)]
    path = tmp_path_factory.mktemp("many") / "page.html"
    path.write_text(html_of(page_data("Zoo", [Run("a", lines), Run("b", lines)])))
    return path


def test_hundreds_of_models_have_a_row_each(tab: Page, many: Path) -> None:
    tab.resize(1600, 900)
    tab.open(many.as_uri())
    values = tab.value("[...document.querySelectorAll('#grid tbody td.share')].map((td) => Number(td.dataset.value))")
    assert values == [number / 100 for number in range(300)]
    tab.value(
        "[...document.querySelectorAll('#grid thead button')].find((b) => b.textContent.includes('tolerance')).click()"
    )
    assert shown(tab)[:2] == ["model_299", "model_298"], "the largest difference comes first"


def test_hundreds_of_models_fit_at_every_width(tab: Page, many: Path) -> None:
    # axe-core examines the first rows: it needs long for 300 equal ones.
    check_widths(
        tab, many.as_uri(), last="document.querySelectorAll('#grid tr:nth-child(n+40)').forEach((r) => r.remove())"
    )
    assert tab.value("document.querySelector('#count').textContent") == "300 models"


@pytest.mark.parametrize("place", ["", "#model=only"])
def test_one_model_fits_at_every_width(tab: Page, tmp_path: Path, place: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(html_of(page_data("Zoo", [Run("a", [check("only"), profile("only")])])))
    check_widths(tab, path.as_uri() + place)
    assert tab.value("document.querySelector('#grid tbody td.share').dataset.value") == "0.5"
