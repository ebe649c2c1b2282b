"""The facts of models: those of several plans together, the levels of processors, and the file of facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.processes.ending import Ending
from compiler.runtime import processor
from compiler.zoo.drift import changed_facts, growth_of, renewed_facts, text_of
from compiler.zoo.facts import Facts, KnownFacts, facts_of_check, joined, kind_of
from compiler.zoo.facts_file import read_facts, write_facts
from compiler.zoo.outcome import Outcome

SMALL = Facts({"plan_bytes": 10, "steps": {"Conv": 1, "Relu": 2}}, {"avx2": {"peak_bytes": 7, "block": 8}})
LARGE = Facts(
    {"plan_bytes": 30, "steps": {"Conv": 4}, "no_kernel": {"If": 1}}, {"avx2": {"peak_bytes": 5, "block": 16}}
)


def test_facts_of_several_plans_are_added_up() -> None:
    assert joined([SMALL]) == SMALL
    assert joined([SMALL, LARGE]) == Facts(
        {"plan_bytes": 40, "steps": {"Conv": 5, "Relu": 2}, "no_kernel": {"If": 1}},
        {"avx2": {"peak_bytes": 7, "block": 16}},
    )


@pytest.mark.parametrize(
    ("isa", "extensions", "chosen", "level"),
    [
        ("scalar", ["AVX2", "AVX-512", "VNNI", "AVX-VNNI"], "scalar", "scalar"),
        ("avx2", ["AVX2"], "", "avx2"),
        ("avx2", ["AVX2", "AVX-VNNI"], "", "avx2-vnni"),
        ("avx2", ["AVX2", "AVX-512", "VNNI"], "avx2", "avx2"),
        ("avx512", ["AVX2", "AVX-512"], "", "avx512"),
        ("avx512", ["AVX2", "AVX-512", "VNNI"], "", "avx512-vnni"),
        ("avx512", ["AVX2", "AVX-512", "VNNI", "AVX-VNNI", "AMX"], "", "avx512-amx"),
        ("avx512", ["AVX2", "AVX-512", "VNNI", "AVX-VNNI", "AMX"], "avx512", "avx512-vnni"),
    ],
)
def test_a_level_names_the_instructions_of_8_bit_products(
    isa: str, extensions: list[str], chosen: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "extensions", lambda: extensions)
    monkeypatch.setenv("CANDLE_PLAN_ISA", chosen)
    assert processor.level_of(isa) == level


def test_a_file_has_the_facts_that_were_written(tmp_path: Path) -> None:
    odd = Facts(
        {"status": "refused (CC0301)", "rewrites.fuse": {"fuse Conv + Relu": 1, 'a "b" \\ ×': 2}, "constants": 0},
        {"avx512-vnni": {"forms.Conv": {"Winograd F(2, 3), in blocks": 3}}},
    )
    known = KnownFacts("cuda", {"a model: 1.0": {"pinned": odd, "unpinned": odd}, "device": {"pinned": odd}})
    write_facts(tmp_path / "facts.toml", known)
    assert read_facts(tmp_path / "facts.toml") == known
    assert kind_of("cuda:1") == "cuda" and kind_of("cpu") == "cpu"


def test_only_levels_of_both_are_compared() -> None:
    other = Facts(SMALL.plan, {"scalar": {"peak_bytes": 1}})
    assert changed_facts(SMALL, other) == []
    assert changed_facts(SMALL, LARGE) == [
        ("no_kernel", {}, {"If": 1}),
        ("plan_bytes", 10, 30),
        ("steps", {"Conv": 1, "Relu": 2}, {"Conv": 4}),
        ("avx2.block", 8, 16),
        ("avx2.peak_bytes", 7, 5),
    ]
    assert (growth_of({"Conv": 1, "Relu": 2}, {"Conv": 4}), growth_of(None, 3), growth_of("equal", "random")) == (
        1,
        3,
        0,
    )
    assert [text_of(each) for each in (None, {}, 1234, {"b": 1, "a": 2}, "equal")] == [
        *("none", "none", "1,234", "a 2, b 1", "equal")
    ]


def test_new_facts_keep_other_levels_and_shapes() -> None:
    other = Facts(SMALL.plan, {"scalar": {"peak_bytes": 1}})
    refused = Facts({"status": "refused (CC0301)"})
    known = KnownFacts(
        "cpu", {"a": {"pinned": SMALL, "unpinned": LARGE}, "b": {"pinned": SMALL}, "gone": {"pinned": SMALL}}
    )
    found = {"a": {"pinned": other}, "b": {"pinned": refused}, "failed": {}}
    new = renewed_facts(known, found)
    assert new.models == {
        "a": {"pinned": Facts(SMALL.plan, {**SMALL.levels, **other.levels}), "unpinned": LARGE},
        "b": {"pinned": refused},
    }
    assert renewed_facts(known, found, ["a"]).models["gone"] == {"pinned": SMALL}


@pytest.mark.parametrize(
    ("verdict", "kind", "status"),
    [
        ("equal", "done", "equal"),
        ("refused", "done", "refused (CC0301)"),
        ("failed", "done", ""),
        ("equal", "crashed", ""),
    ],
)
def test_only_a_whole_check_has_facts(verdict: str, kind: str, status: str) -> None:
    codes = ("CC0301",) if verdict == "refused" else ()
    outcome = Outcome("a", "plain", verdict, codes=codes)  # type: ignore[arg-type]
    ending = Ending(kind, result={"pinned": SMALL.data})  # type: ignore[arg-type]
    found = facts_of_check(ending, {"pinned": [outcome]})
    assert [each.status for each in found.values()] == ([status] if status else [])


def test_a_refused_model_has_only_its_status() -> None:
    outcome = Outcome("a", "plain", "refused", codes=("CC0301",))
    found = facts_of_check(Ending("done", result={}), {"unpinned": [outcome]})
    assert found == {"unpinned": Facts({"status": "refused (CC0301)"})}
