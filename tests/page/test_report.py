"""The data of the page of a compilation: what each pass did and where, the steps, and what they read and write."""

from __future__ import annotations

from typing import Any

import pytest

import compiler
from compiler.page.places import Places
from compiler.page.report import Compilation, report_data
from compiler.page.write import html_of
from tests.page.compiled import MODEL, compiled, data_of, model
from tests.page.elements import Elements


def step_of(data: Any, op: str) -> tuple[int, dict[str, Any]]:
    """The number of the step with an op, and its fields."""
    columns = data["profile"]["steps"]
    place = columns["op"].index(op)
    return place + 1, {key: values[place] for key, values in columns.items()}


def test_each_pass_has_its_places_with_module_and_line() -> None:
    data = data_of()
    [found] = [each for each in data["passes"] if each["name"] == "drop_identities" and each["fired"]]
    assert (found["before"] - found["after"], found["seconds"], found["about"]) == (1, 0.25, "about drop_identities")
    [group] = found["fired"]
    assert group["rule"] == "DropIdentity" and group["about"].startswith("`Identity(x)` → `x`")
    [[place, note]] = group["places"]
    assert data["places"][place] == {"nodes": ["Identity(same)"], "module": "body", "source": "net.py:7 in forward"}
    assert note == "" and data["classes"]["body.linear"] == "Linear"


def test_every_rewrite_and_near_miss_is_on_the_page() -> None:
    _, reports = compiled(model())
    data = data_of()
    assert [each["name"] for each in data["passes"]] == [report.name for report, _ in reports]
    for shown, (report, _) in zip(data["passes"], reports, strict=True):
        assert (shown["before"], shown["after"]) == (report.nodes_before, report.nodes_after)
        assert sum(len(group["places"]) for group in shown["fired"]) == len(report.fired)
        missed = {(group["rule"], group["reason"]): group["places"] for group in shown["missed"]}
        assert sum(map(len, missed.values())) == len(report.near_misses)
        for each in report.near_misses:
            nodes = [data["places"][place]["nodes"] for place in missed[each.rule, each.reason]]
            assert [*each.origin.nodes] in nodes


def test_the_steps_are_those_of_the_session() -> None:
    plan, _ = compiled(model())
    prepared = compiler.load(plan, threads=1).prepared()
    data = data_of()
    columns = data["profile"]["steps"]
    assert columns["op"] == [step.op for step in prepared.steps]
    assert columns["operations"] == [step.operations for step in prepared.steps]
    assert columns["alive_bytes"] == [step.alive_bytes for step in prepared.steps]
    assert columns["depth"] == [step.depth for step in prepared.steps]
    assert (data["profile"]["runs"], data["profile"]["milliseconds"]) == (None, None) and data["verified"] is None
    assert data["facts"]["plan"]["plan_bytes"] == plan.size
    assert data["summary"] == "7 nodes became 2 steps." and data["title"] == "m.onnx"
    assert data["ends"] == {"inputs": [["x", "float32 [2, 4]"], ["c", "bool []"]], "outputs": [["y", "float32 [2, 4]"]]}


def test_a_step_names_where_its_inputs_come_from() -> None:
    data = data_of()
    number, gemm = step_of(data, "Gemm")
    assert data["places"][gemm["place"]]["module"] == "body.linear"
    assert [source for _, _, source in gemm["inputs"]] == ["input", "constant", "constant"]
    _, choice = step_of(data, "If")
    assert [source for _, _, source in choice["inputs"]] == ["input", number]
    inner, relu = step_of(data, "Unary")
    assert relu["inputs"][0][2] is None, "its value is that of another block"
    assert step_of(data, "Softmax")[1]["inputs"][0][2] == inner + 1, "Exp"


def test_a_run_adds_times_and_the_comparison() -> None:
    data = data_of(is_run=True)
    profile = data["profile"]
    assert (profile["runs"], profile["threads"]) == (10, 1) and profile["milliseconds"] > 0
    times = zip(profile["steps"]["seconds"], profile["steps"]["depth"], strict=True)
    assert profile["milliseconds"] == pytest.approx(1e3 * sum(each for each, depth in times if not depth) / 10)
    assert data["verified"]["verdict"] == "equal" and [each["name"] for each in data["verified"]["outputs"]] == ["y"]


def test_dimensions_without_a_size_are_named() -> None:
    text = MODEL.replace("[2, 4] x", "[n, 4] x").replace("[2, 4]", "[n, 4]")
    plan = compiler.compile(model(text))
    data = report_data(Compilation("m", plan, [], compiler.load(plan)), str)
    assert data["profile"]["symbols"] == ["n"]


def test_the_heading_is_there_without_scripts() -> None:
    page = Elements(html_of({"title": "a<b>\ud800", "summary": "3 nodes & 2 steps."}, "report"))
    assert [text for _, text in page.of("h1")] == ["a<b>\ufffd"] and "3 nodes & 2 steps." in page.of("p")[-1][1]


def test_places_are_listed_once() -> None:
    places = Places({"a": "A", "a.b": "B", "ab": "C"})
    assert [places.index(["n"], "a.b.c", "f:1"), places.index(["m"]), places.index(["n"], "a.b.c", "f:1")] == [0, 1, 0]
    assert places.data[0] == {"nodes": ["n"], "module": "a.b.c", "source": "f:1"}
    assert places.classes == {"a": "A", "a.b": "B"}
