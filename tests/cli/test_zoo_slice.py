"""`candlec zoo slice`: models that cover every operator, rule and kernel form of a zoo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.zoo.facts import Facts
from compiler.zoo.index import Entry
from compiler.zoo.outcome import Result
from compiler.zoo.records import Record, ResultName
from compiler.zoo.select import selected
from compiler.zoo.slice import slice_of
from tests.cli.command import run
from tests.cli.test_zoo_compare import result, times, write


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def records(models: dict[str, tuple[float | None, str]], task: str = "pinned, cpu") -> dict[ResultName, Record]:
    """The records of models: the seconds of a check, and the operators as letters."""
    equal = Result("equal", 0.0)
    facts = {name: Facts({"steps": dict.fromkeys(ops, 1)}) for name, (_, ops) in models.items()}
    return {ResultName(name, task): Record(equal, True, each[0], facts=facts[name]) for name, each in models.items()}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({}, []),
        ({"a": (1, "")}, []),
        ({"a": (1, "XY"), "b": (1, "Y")}, ["a"]),
        ({"a": (1, "XY"), "b": (1, "YZ"), "c": (1, "XYZ")}, ["c"]),
        ({"a": (1, "XY"), "b": (1, "YZ"), "c": (9, "XYZ")}, ["a", "b"]),
        ({"b": (1, "X"), "a": (1, "X")}, ["a"]),
        ({"b": (0, "X"), "a": (0, "XY")}, ["a"]),
        ({"a": (None, "X"), "b": (None, "XY"), "c": (None, "Z")}, ["b", "c"]),
        # The greedy choice takes `wide` first; the others then cover all of it.
        ({"wide": (2, "CDEF"), "one": (2.5, "ACD"), "two": (2.5, "BEF")}, ["one", "two"]),
    ],
)
def test_a_slice_covers_everything_in_little_time(
    models: dict[str, tuple[float | None, str]], expected: list[str]
) -> None:
    made = slice_of(records(models))
    assert list(made.models) == expected
    assert list(slice_of(dict(reversed(records(models).items()))).models) == expected
    assert made.counts["operator"] == len({op for _, ops in models.values() for op in ops})


def test_the_seconds_of_all_checks_count() -> None:
    both = records({"a": (1, "X"), "b": (2, "X")}) | records({"a": (4, "X"), "b": (2, "Y")}, "unpinned, cpu")
    made = slice_of(both)
    assert made.models == {"b": 4} and made.whole == {"a": 5, "b": 4} and made.seconds == (4, 9)


@pytest.mark.parametrize(("overhead", "expected"), [("0", "a b"), ("1", "a b"), ("100", "c")])
def test_each_model_of_a_slice_costs_an_overhead(
    overhead: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ops = {"a": "XY", "b": "YZ", "c": "XYZ"}
    steps = {name: {"steps": dict.fromkeys(each, 1)} for name, each in ops.items()}
    seconds = {"a": 1.0, "b": 1.0, "c": 3.0}
    write("r.jsonl", *(result(name, plan=plan, seconds=seconds[name]) for name, plan in steps.items()))
    assert run("zoo", "slice", "r.jsonl", "--overhead", overhead) == 0
    assert capsys.readouterr().out.split() == expected.split()


@pytest.mark.parametrize("overhead", ["-1", "nan", "inf"])
def test_an_overhead_is_a_time(overhead: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("r.jsonl", result("a"))
    assert run("zoo", "slice", "r.jsonl", "--overhead", overhead) == 2
    assert "--overhead" in capsys.readouterr().err


def test_rules_and_forms_are_covered(capsys: pytest.CaptureFixture[str]) -> None:
    forms: dict[str, Any] = {"forms.Conv": {"Winograd": 1}}
    write(
        "r.jsonl",
        result("plain"),
        result("form", level=forms),
        result("rule", plan={"rewrites.fuse": {"a": 1, "b": 2}}, seconds=0.2),
        result("other", level=forms, name="avx512", seconds=1),
        result("refused", "refused", None, ok=False, codes=("CC0301",)),
        *times(50, 51, 52),
    )
    assert run("zoo", "slice", "r.jsonl") == 0
    printed = capsys.readouterr()
    assert printed.out == "form\nother\nrule\n"
    assert printed.err == "3 of 6 models, in 5.2 of 6.0 s: 2 operators, 2 rules, 3 forms\n"
    assert run("zoo", "slice", "r.jsonl", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] and data["of"] == 6 and data["covered"] == {"operator": 2, "rule": 2, "form": 3}
    assert {each["name"] for each in data["models"]} == {"form", "other", "rule"}


def test_a_chain_of_fused_operators_is_covered_in_pairs() -> None:
    chains = {"a": "fuse X + Y + Z", "b": "fuse X + Y", "c": "fuse Y + Z", "d": "fuse Z + Y", "e": "keep X + Y"}
    equal = Result("equal", 0.0)
    made = slice_of(
        {
            ResultName(name, "pinned, cpu"): Record(equal, True, 1.0, facts=Facts({"rewrites.fuse": {chain: 1}}))
            for name, chain in chains.items()
        }
    )
    assert list(made.models) == ["a", "d", "e"]
    assert {name for _, name in made.items} == {
        f"fuse: {each}" for each in ("fuse X + Y", "fuse Y + Z", *list(chains.values())[3:])
    }


def test_a_file_of_facts_has_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    tables = (
        f'[model.{name}.pinned]\nstatus = "equal"\nsteps = {{{ops}}}\n'
        for name, ops in (("a", "X = 1"), ("b", "X = 1, Y = 2"))
    )
    Path("f.toml").write_text("".join(["device = 'cpu'\n", *tables]))
    assert run("zoo", "slice", "f.toml") == 0
    printed = capsys.readouterr()
    assert printed.out == "b\n" and printed.err == "1 of 2 models: 2 operators, 0 rules, 0 forms\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.jsonl", "", "r.jsonl has no facts of plans: write it with `candlec zoo run --results`"),
        ("r.jsonl", "odd\n", "r.jsonl is not a file of results"),
        ("f.toml", "odd", "f.toml is not a file of facts"),
        ("f.toml", "device = 'cpu'\n[model.a.pinned]\nstatus = 'odd'", "f.toml is not a file of facts: 'odd' is not a"),
    ],
)
def test_other_files_are_refused(name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text(text)
    assert run("zoo", "slice", name) == 1
    assert said in capsys.readouterr().err


ENTRIES = [Entry(name, Path(f"{name}.onnx"), (), tags=(tag,)) for name, tag in (("a", "x"), ("b", "y"), ("@c", "y"))]


def test_a_file_selects_models() -> None:
    Path("slice.txt").write_text("# a slice\n\n a \n")
    assert [each.name for each in selected(ENTRIES, ["@slice.txt"])] == ["a"]
    assert [each.name for each in selected(ENTRIES, ["@slice.txt", "b"])] == ["a", "b"]
    Path("slice.txt").write_text("tag:y\n")
    assert [each.name for each in selected(ENTRIES, ["@slice.txt"])] == ["b", "@c"]
    assert [each.name for each in selected(ENTRIES, ["@c"])] == ["@c"], "the name of a model comes first"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read the names of models in slice.txt"),
        ("# none\n", "slice.txt names no model"),
        ("d", "no model d"),
    ],
)
def test_a_file_that_selects_nothing_is_refused(text: str | None, said: str) -> None:
    if text is not None:
        Path("slice.txt").write_text(text)
    with pytest.raises(ValueError, match=said):
        selected(ENTRIES, ["@slice.txt"])
