"""The data and the text of the page: its numbers equal the files of results, and no name becomes a part of the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from compiler.page.history import Run
from compiler.page.results import page_data, write_page
from compiler.page.write import KINDS, html_of
from tests.page.elements import Elements, data_in
from tests.zoo.lines import VARIANTS, check, ended, line, output, profile, refused, rounding, times

FOLDER = Path(__file__).parents[2] / "compiler/page"


def data_of(*runs: list[Any]) -> Any:
    """The data of a page, read from its text."""
    data = page_data("Zoo", [Run(f"run {number}", lines) for number, lines in enumerate(runs)])
    read = data_in(html_of(data))
    assert read == data
    return read


def test_the_numbers_are_those_of_the_file() -> None:
    lines = [check("a", tags=("audio",)), profile("a"), *times("a", 60.0, 62.0, 61.0), rounding("a", 1e-7, 2e-7)]
    [model] = data_of(lines)["models"]
    assert (model["name"], model["tags"], model["problems"]) == ("a", ["audio"], [])
    assert model["precision"] == {"plan": 1e-7, "reference": 2e-7}
    found, ending = model["checks"]["pinned, cpu"], lines[0]["ending"]
    assert (found["result"], found["verdict"], found["ok"]) == ("equal", "equal", True)
    assert found["facts"] == {
        "plan": {"status": "equal", **ending["result"]["pinned"]["plan"]},
        "levels": ending["result"]["pinned"]["levels"],
    }
    assert found["outcomes"] == [part for _, part in ending["parts"]]
    assert found["time"] == {"percent": 61, "noise": 2}
    numbers = {"share": 0.5, "plan_bytes": 4_725_000, "peak_bytes": 295_232, "operations": 51_420_672}
    numbers |= {"milliseconds": pytest.approx(10.0), "percent": 61, "seconds": 1.0}
    assert {name: values[0] for name, values in found["history"].items()} == numbers
    measured = lines[1]["ending"]["result"]
    steps = {name: [step[name] for step in measured["steps"]] for name in measured["steps"][0]}
    assert found["profile"] == {**measured, "steps": steps, "milliseconds": pytest.approx(10.0)}


def test_results_without_a_plan_have_their_reason() -> None:
    models = data_of([refused("a"), ended("b"), check("c", "different", None)])["models"]
    a, b, c = (model["checks"]["pinned, cpu"] for model in models)
    assert (a["result"], a["verdict"], a["facts"]["plan"]) == ("refused (CC0301)", "refused", {"status": a["result"]})
    assert a["outcomes"][0]["advice"] == {a["outcomes"][0]["remarks"][0]: "use 2-D operators"}
    assert (b["verdict"], b["ok"], b["facts"]) == ("crashed", False, None)
    assert [each["verdict"] for each in b["outcomes"]] == ["equal", "crashed", "crashed", "crashed"]
    assert b["outcomes"][1]["remarks"] == ["it crashed with SIGSEGV (segmentation fault); last phase: run: io"]
    assert "share" not in c["history"], "an infinite difference has no number"


def test_a_measurement_that_failed_is_a_problem() -> None:
    crash = {"kind": "crashed", "message": "it crashed"}
    failed = line("a", "profile, pinned, cpu", crash, ok=False)
    [model] = data_of([check("a"), failed])["models"]
    assert model["problems"] == ["profile, pinned, cpu: it crashed"]
    assert model["checks"]["pinned, cpu"]["profile"] is None


def test_the_history_has_a_number_for_each_file() -> None:
    old = [check("a", plan={"plan_bytes": 1}), check("gone"), check("a", shapes="unpinned")]
    other = [check("a", "different", 3.0, ok=False, level="scalar"), check("new")]
    data = data_of(old, other, [check("a", plan={"plan_bytes": 5}), check("new")])
    assert [each["name"] for each in data["models"]] == ["a", "new", "gone"]
    assert [(task["name"], task["run"], task["variants"]) for task in data["tasks"]] == [
        ("pinned, cpu", 2, VARIANTS),
        ("unpinned, cpu", 0, VARIANTS),
    ]
    a, new, gone = (model["checks"] for model in data["models"])
    assert a["pinned, cpu"]["history"]["plan_bytes"] == [1, 4_725_000, 5]
    assert a["pinned, cpu"]["history"]["share"] == [0.5, 3.0, 0.5]
    assert a["pinned, cpu"]["history"]["peak_bytes"] == [295_232, None, 295_232], "of the same level of the processor"
    assert a["unpinned, cpu"]["verdict"] == "equal", "the newest file of each kind of check counts"
    assert new["pinned, cpu"]["history"]["seconds"] == [None, 1.0, 1.0] and "unpinned, cpu" not in new
    assert (gone["pinned, cpu"]["verdict"], gone["pinned, cpu"]["ok"]) == ("missing", None)
    assert gone["pinned, cpu"]["history"]["seconds"] == [1.0, None, None]


def test_a_file_of_an_earlier_version_has_a_page() -> None:
    former = check("a")
    del former["tags"]
    for _, part in former["ending"]["parts"]:
        del part["outputs"]
    [model] = data_of([former])["models"]
    assert model["tags"] == [] and [each["outputs"] for each in model["checks"]["pinned, cpu"]["outcomes"]] == [[]] * 4


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\u2028 ]]> & &lt;",
    "{{data}}",
    "a\ud800b",
    "\u202eabc",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_a_part_of_the_page(name: str) -> None:
    lines = [check(name, remarks=[name], tags=(name,), outputs=[output(name, 0.1)]), profile(name)]
    text = html_of(page_data(name, [Run(name, lines)]))
    assert text.encode().count(b"</script") == 2, "a lone surrogate is no obstacle either"
    page = Elements(text)
    kinds = [(attributes.get("type"), attributes.get("id")) for attributes, _ in page.of("script")]
    assert kinds == [("application/json", "data"), ("module", None)]
    [model] = json.loads(page.of("script")[0][1])["models"]
    assert (model["name"], model["tags"]) == (name, [name])


def test_only_its_own_scripts_and_styles_take_effect() -> None:
    page = Elements(html_of(page_data("Zoo", [Run("a", [check("a")])])))
    [policy] = [each["content"] for each, _ in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (page.of("script")[1][1], page.of("style")[0][1])
    ]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not [attributes for _, attributes, _ in page.found if "style" in attributes or "src" in attributes]
    assert [attributes["href"] for _, attributes, _ in page.found if "href" in attributes] == ["data:,"]


def test_the_scripts_set_text_only_as_text() -> None:
    scripts = {path.name: path.read_text() for path in FOLDER.rglob("*.js")}
    wrong = re.compile(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|setTimeout")
    assert scripts and not [name for name, text in scripts.items() if wrong.search(text)]
    pages = {kind: html_of(page_data("Zoo", [Run("a", [check("a")])]), kind) for kind in KINDS}
    assert all(scripts[name] in pages[kind] for kind in KINDS for name in KINDS[kind].scripts)
    assert {*scripts} == {name for kind in KINDS.values() for name in kind.scripts}, "no script is left over"


def test_lines_of_the_template_are_short() -> None:
    files = [path for path in FOLDER.rglob("*") if path.suffix in (".css", ".html", ".js")]
    lines = [(path.name, line) for path in files for line in path.read_text().splitlines()]
    assert lines and not [(name, line) for name, line in lines if len(line) > 120]


def test_equal_results_give_equal_pages(tmp_path: Path) -> None:
    results = {"one": [check("a"), profile("a")], "two": [check("a")]}
    for name in ("a.html", "b.html"):
        assert write_page(tmp_path / name, "Zoo", results) == 1
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_needs_a_check(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file has a check of a model: `candlec zoo run --results FILE` writes"):
        write_page(tmp_path / "page.html", "Zoo", {"a": [rounding("a", 1e-7, 2e-7)]})
    with pytest.raises(ValueError, match="a result has a number that is not finite"):
        write_page(tmp_path / "page.html", "Zoo", {"a": [check("a", share=float("nan"))]})
    assert not list(tmp_path.iterdir())
