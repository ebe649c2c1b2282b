"""`candlec zoo compare`: what has changed between two files of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run

PLAN = {"plan_bytes": 4000, "constants": 2, "steps": {"Conv": 2, "Relu": 1}, "rewrites.fuse": {"a": 1}}
LEVEL = {"peak_bytes": 1024, "forms.Conv": {"direct": 2}}
VARIANTS = ("optimized, 1 thread", "optimized, 2 threads", "plain, 1 thread", "plain, 2 threads")


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def result(
    model: str,
    verdict: str = "equal",
    share: float | None = 0.5,
    *,
    ok: bool = True,
    seconds: float = 0.1,
    codes: tuple[str, ...] = (),
    plan: dict[str, Any] | None = None,
    level: dict[str, Any] | None = None,
    name: str = "avx2",
) -> dict[str, Any]:
    """The line of a check."""
    facts = {"plan": PLAN | (plan or {}), "levels": {name: LEVEL | (level or {})}}
    common = {"model": model, "verdict": verdict, "share": share, "seconds": seconds, "codes": list(codes), "note": ""}
    parts = [["pinned", {**common, "variant": variant, "remarks": ["why"]}] for variant in VARIANTS]
    ending = {"kind": "done", "result": {"pinned": facts}, "parts": parts, "seconds": 4 * seconds}
    return line(model, "check, pinned, cpu", ok, verdict, ending)


def line(model: str, what: str, ok: bool, said: str, ending: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "what": what, "ok": ok, "result": said, "digest": "", "limits": {}, "ending": ending}


def rounding(plan: float) -> dict[str, Any]:
    """The line of a measurement of rounding errors."""
    ending = {"kind": "done", "parts": [], "result": {"plan": plan, "reference": 1e-6}}
    return line("a", "precision", True, "ratio", ending)


def times(*percent: float | str) -> list[dict[str, Any]]:
    """The lines of the processes that time a model: what they measure, or how they end."""
    lines = []
    for number, each in enumerate(percent, 1):
        kind, result = (each, None) if isinstance(each, str) else ("done", {"plan": each, "onnxruntime": 100.0})
        ending = {"kind": kind, "parts": [], "result": result, "seconds": 3.0 * number}
        lines.append(line("a", f"time, avx2, {number}", kind == "done", "", ending))
    return lines


def write(name: str, *lines: dict[str, Any]) -> None:
    Path(name).write_text("".join(f"{json.dumps(each)}\n" for each in lines))


def changes(old: list[dict[str, Any]], new: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> Any:
    """The exit code, and the changes as `kind model what before after effect`."""
    write("old.jsonl", *old)
    write("new.jsonl", *new)
    code = run("zoo", "compare", "old.jsonl", "new.jsonl", "--json")
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is (code == 0)
    keys = ("kind", "model", "what", "before", "after", "effect")
    return code, [tuple(each[key] for key in keys) for each in data["changes"]]


REFUSED = result("a", "refused", None, ok=False, codes=("CC0301",))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (result("a"), result("a"), []),
        (result("a"), result("a", share=0.505, seconds=0.2), []),
        (result("a", share=0.001), result("a", share=0.005), []),
        (result("a"), REFUSED, [("verdict", "a", "verdict", "equal", "refused (CC0301)", "worse")]),
        (REFUSED, result("a"), [("verdict", "a", "verdict", "refused (CC0301)", "equal", "better")]),
        (
            REFUSED,
            result("a", "refused", None, ok=False, codes=("CC0205",)),
            [("verdict", "a", "verdict", "refused (CC0301)", "refused (CC0205)", "")],
        ),
        (
            result("a", "different", 2.0),
            result("a", "different", 2.1, ok=False),
            [("verdict", "a", "verdict", "different, acceptable", "different, not acceptable", "worse")],
        ),
        (result("a"), None, [("verdict", "a", "verdict", "equal", None, "worse")]),
        (None, result("a"), [("verdict", "a", "verdict", None, "equal", "")]),
        (None, REFUSED, [("verdict", "a", "verdict", None, "refused (CC0301)", "worse")]),
        (result("a"), result("a", share=0.6), [("error", "a", "difference", 0.5, 0.6, "worse")]),
        (result("a"), result("a", share=0.0), [("error", "a", "difference", 0.5, 0.0, "better")]),
        (rounding(1e-6), rounding(3e-6), [("error", "a", "rounding error", 1e-6, 3e-6, "worse")]),
        (rounding(1e-8), rounding(3e-8), []),
        (result("a"), result("a", plan={"plan_bytes": 3000}), [("fact", "a", "plan_bytes", 4000, 3000, "better")]),
        (
            result("a"),
            result("a", plan={"steps": {"Conv": 3}}),
            [("fact", "a", "steps", {"Conv": 2, "Relu": 1}, {"Conv": 3}, "")],
        ),
        (
            result("a"),
            result("a", plan={"no_kernel": {"TopK": 1}}),
            [("fact", "a", "no_kernel", {}, {"TopK": 1}, "worse")],
        ),
        (
            result("a"),
            result("a", level={"forms.Conv": {"Winograd": 2}}),
            [("fact", "a", "avx2.forms.Conv", {"direct": 2}, {"Winograd": 2}, "")],
        ),
        (result("a"), result("a", seconds=1.0), [("time", "a", "time", 0.4, 4.0, "")]),
        (result("a"), result("a", level={"peak_bytes": 1}, name="scalar"), []),
    ],
)
def test_a_change_has_a_kind_and_an_effect(
    old: dict[str, Any] | None, new: dict[str, Any] | None, expected: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = changes([old] if old else [], [new] if new else [], capsys)
    assert found == expected
    assert code == any(each[-1] == "worse" for each in expected)


SLOWER = ("time", "a", "share of onnxruntime's time", 60, 80, "")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (times(60.0), times(66.0), []),
        (times(60.0), times(80.0, 81.0, 79.0), [SLOWER]),
        (times(80.0), times(60.0), [("time", "a", "share of onnxruntime's time", 80, 60, "")]),
        (times(60.0), times(80.0, 80.0, 80.0, 62.0), []),
        (times(60.0), times(50.0, 50.0, 50.0, 80.0, 81.0, 79.0), [SLOWER]),
        (times(50.0, 60.0, 70.0), times(80.0), []),
        (times(60.0), [], []),
        ([], times(60.0), []),
        (times(60.0), times(60.0, "crashed"), [("verdict", "a", "verdict", "measured", "failed", "worse")]),
        ([], times("timed out"), [("verdict", "a", "verdict", None, "failed", "worse")]),
    ],
)
def test_times_of_plans_have_a_band(
    old: list[dict[str, Any]], new: list[dict[str, Any]], expected: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = changes([result("a"), *old], [result("a"), *new], capsys)
    assert found == expected
    assert code == any(each[-1] == "worse" for each in expected)


def test_the_most_important_changes_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    old = [result(name) for name in ("fact", "late", "less", "more", "wrong", "same")]
    new = [
        result("fact", plan={"plan_bytes": 4001}),
        result("late", seconds=2.0),
        result("less", share=0.6),
        result("more", share=5.0),
        result("wrong", "different", 20.0, ok=False),
        result("same"),
    ]
    write("old.jsonl", *old)
    write("new.jsonl", *new)
    assert run("zoo", "compare", "old.jsonl", "new.jsonl") == 1
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in each.split("  ") if cell.strip()] for each in printed.splitlines()[2:-2]]
    assert rows == [
        ["✗", "wrong", "pinned, cpu", "verdict", "equal", "different"],
        ["✗", "wrong", "pinned, cpu", "difference", "0.5", "20"],
        ["✗", "more", "pinned, cpu", "difference", "0.5", "5"],
        ["✗", "less", "pinned, cpu", "difference", "0.5", "0.6"],
        ["✗", "fact", "pinned, cpu", "plan_bytes", "4,000", "4,001"],
        ["late", "pinned, cpu", "time", "0.4 s", "8.0 s"],
    ]
    assert printed.endswith("\n6 changes in 6 models: 5 worse, 0 better\n")


def test_a_crash_is_worse_and_levels_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    crash = {"kind": "crashed", "message": "it crashed", "parts": [], "result": None}
    write("old.jsonl", result("a"), result("b"))
    write("new.jsonl", line("a", "check, pinned, cpu", False, "crashed", crash), result("b", name="scalar"))
    assert run("zoo", "compare", "old.jsonl", "new.jsonl") == 1
    printed = capsys.readouterr()
    assert "1 change in 2 models: 1 worse, 0 better" in printed.out and "crashed" in printed.out
    assert "note: the files are of different levels of the processor, avx2 and scalar, so their kernels" in printed.err
    assert run("zoo", "compare", "old.jsonl", "old.jsonl") == 0
    assert capsys.readouterr().out == "nothing has changed in 2 models\n"


def test_files_have_to_be_results(capsys: pytest.CaptureFixture[str]) -> None:
    write("old.jsonl", result("a"))
    Path("other.json").write_text("[1]\n")
    assert run("zoo", "compare", "old.jsonl", "other.json") == 1
    assert "other.json is not a file of results of `candlec zoo`" in capsys.readouterr().err
    assert run("zoo", "compare", "gone.jsonl", "old.jsonl") == 1
    assert "gone.jsonl" in capsys.readouterr().err


def test_results_of_runs_can_be_compared(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--results", "old.jsonl") == 0
    assert run("zoo", "update", "--zoo", ".", "--results", "new.jsonl", "--baseline", "zoo.toml") == 0
    capsys.readouterr()
    assert run("zoo", "compare", "old.jsonl", "new.jsonl", "--json") == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    [change] = [each for each in changes if each["kind"] != "time"]
    assert (change["model"], change["task"]) == ("echo", "unpinned, cpu")
    assert (change["before"], change["after"], change["effect"]) == (None, "equal", "")


def test_a_file_of_facts_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    facts = """device = "cpu"
[model.a.pinned]
status = "equal"
plan_bytes = 3000
constants = 2
steps = {Conv = 2, Relu = 1}
rewrites.fuse = {a = 1}
level.avx2.peak_bytes = 1024
level.avx2.forms.Conv = {direct = 2}
level.avx2.time = {percent = 50, noise = 1}
[model.a.unpinned]
status = "refused (CC0301, CC0302)"
"""
    Path("old.toml").write_text(facts)
    write("new.jsonl", result("a", "different", 2.0, ok=False), *times(80, 81, 82))
    assert run("zoo", "compare", "old.toml", "new.jsonl", "--json") == 1
    data = json.loads(capsys.readouterr().out)["changes"]
    found = [(each["what"], each["before"], each["after"], each["effect"]) for each in data]
    assert found == [
        ("verdict", "equal", "different", "worse"),
        ("plan_bytes", 3000, 4000, "worse"),
        ("share of onnxruntime's time", 50, 81, ""),
    ]
    Path("new.toml").write_text(facts.replace("CC0302", "CC0303").replace("50", "80"))
    assert run("zoo", "compare", "old.toml", "new.toml") == 0
    assert "2 changes in 1 model: 0 worse, 0 better\n" in capsys.readouterr().out
