"""`candlec zoo page`: the results of runs as an HTML file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run
from tests.zoo.lines import check, rounding, write


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def data(path: str = "page.html") -> Any:
    """The data of a page."""
    found = re.search(r'id="data">(.*?)</script>', Path(path).read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_results_of_a_run_have_a_page(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = json.loads(Path("INDEX.json").read_text())
    Path("INDEX.json").write_text(json.dumps([{**index[0], "tags": ["small"]}]))
    assert run("zoo", "run", "--zoo", ".", "--results", "zoo.jsonl", "--profile") == 0
    capsys.readouterr()
    assert run("zoo", "page", "zoo.jsonl") == 0
    assert capsys.readouterr().out == "page.html: 1 model\n"
    [model] = data()["models"]
    made = model["checks"]["pinned, cpu"]
    assert (data()["title"], model["name"], model["tags"], made["verdict"]) == ("Models", "echo", ["small"], "equal")
    assert [output["name"] for output in made["outcomes"][0]["outputs"]] == ["y", "m"]
    assert made["profile"]["runs"] == 10 and made["history"]["milliseconds"][0] >= 0


def test_files_are_named_from_the_oldest(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("one", "two"):
        Path(folder).mkdir()
        write(Path(folder, "zoo.jsonl"), check("a"))
    write(Path("last.jsonl"), check("a"), check("b"))
    assert run("zoo", "page", "one/zoo.jsonl", "last.jsonl", "-o", "zoo.html", "--title", "A <b> & c") == 0
    assert capsys.readouterr().out == "zoo.html: 2 models\n"
    assert (data("zoo.html")["runs"], data("zoo.html")["title"]) == (["zoo", "last"], "A <b> & c")
    assert "<title>A &lt;b&gt; &amp; c</title>" in Path("zoo.html").read_text()
    assert run("zoo", "page", "one/zoo.jsonl", "two/zoo.jsonl") == 0
    assert data()["runs"] == ["one/zoo.jsonl", "two/zoo.jsonl"], "the paths tell equal names apart"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Missing argument 'RESULTS...'"),
        (["gone.jsonl"], 1, "gone.jsonl: No such file"),
        (["other.json"], 1, "other.json is not a file of results of `candlec zoo`"),
        (["zoo.jsonl", "zoo.jsonl"], 2, "zoo.jsonl is named twice"),
        (["zoo.jsonl", "-o", "zoo.jsonl"], 2, "zoo.jsonl is an input of this command"),
        (["zoo.jsonl", "-o", "gone/page.html"], 2, "the folder 'gone' does not exist"),
        (["precision.jsonl"], 1, "no file has a check of a model"),
        (["nan.jsonl"], 1, "a result has a number that is not finite"),
    ],
)
def test_wrong_arguments_and_files_are_refused(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("zoo.jsonl"), check("a"))
    write(Path("precision.jsonl"), rounding("a", 1e-7, 2e-7))
    write(Path("nan.jsonl"), check("a", share=float("nan")))
    Path("other.json").write_text("[1]\n")
    assert run("zoo", "page", *arguments) == code
    assert said in capsys.readouterr().err
    assert not Path("page.html").exists()
