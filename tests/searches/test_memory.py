"""The search for the pass after which a plan needs more memory than the good side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.bisect import subject as subjects
from compiler.bisect.good import Good, GoodFacts
from compiler.bisect.memory import find_memory
from compiler.bisect.result import NoGoodSide
from compiler.errors import CompileError, Diagnostic
from compiler.options import Options
from compiler.runtime.prepared import Prepared
from compiler.runtime.session import Session
from tests import broken_passes
from tests.searches.good_sides import BASE, good_facts, good_plan, subject

SIDES = {"no good side": None, "a plan": good_plan, "facts": good_facts}


def side(name: str) -> Good | None:
    made = SIDES[name]
    return None if made is None else made()


@pytest.mark.parametrize("name", SIDES)
def test_nothing_is_wrong(name: str) -> None:
    found = find_memory(subject(), side(name))
    assert not found.is_wrong and found.cause is None and found.step is None
    assert found.numbers["bytes"] <= found.numbers["bound"]
    assert found.said.startswith(f"the peak memory of a run is {found.numbers['bytes']:,} bytes, that of ")


@pytest.mark.parametrize("name", SIDES)
def test_a_pass_that_enlarges_a_plan_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    found = find_memory(subject(), side(name))
    assert found.is_wrong and found.cause is not None and found.step is not None
    assert (found.cause.culprit.name, found.cause.culprit.others) == ("merge_reshapes", ())
    assert [each.nodes for each in found.cause.culprit.places] == [("Neg(neg)",)]
    assert (found.step.op, found.step.origin) == ("Concat", "Neg(neg)")
    assert found.numbers["bytes"] > found.numbers["bound"]
    how = "it does not rewrite as recorded: Enlarge 0 → 1" if name == "facts" else "as soon as it runs"
    assert how in found.cause.why


def test_memory_that_no_pass_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that needs more memory than the facts say: the passes make the same rewrites."""
    prepared = Session.prepared

    def doubled(session: Session) -> Prepared:
        whole = prepared(session)
        steps = [replace(each, alive_bytes=2 * (each.alive_bytes or 0)) for each in whole.steps]
        return replace(whole, peak_bytes=2 * whole.peak_bytes, steps=steps)

    monkeypatch.setattr(Session, "prepared", doubled)
    found = find_memory(subject(), good_facts())
    assert found.is_wrong and found.cause is None and found.step is not None
    assert "the passes make the same rewrites as recorded" in found.no_cause


def test_passes_that_cannot_be_tried_are_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_enlarge(monkeypatch, "drop_noops")
    compile, names = subjects.compile_stored, subject().names
    untried = names[names.index("drop_noops") - 1]

    def refusing(model: object, options: Options) -> object:
        if options.passes and options.passes[-1] == untried:
            raise CompileError([Diagnostic("CC0505", "a fact does not hold")])
        return compile(model, options)  # type: ignore[arg-type]

    monkeypatch.setattr(subjects, "compile_stored", refusing)
    cause = find_memory(subject()).cause
    assert cause is not None
    assert (cause.culprit.name, cause.culprit.others) == ("drop_noops", (untried,))


def test_unknown_sizes_are_refused() -> None:
    with pytest.raises(NoGoodSide, match=r"the memory of \d+ steps of the model depends on n: .* --dim n=N"):
        find_memory(replace(subject(), base=Options()))
    symbolic = replace(good_plan(), plan=replace(subject(), base=Options()).whole()[0].plan)
    with pytest.raises(NoGoodSide, match=r"of old.plan depends on n: compile it again with --dim n=N"):
        find_memory(subject(), symbolic)


def test_facts_of_another_level_are_refused() -> None:
    facts = good_facts().facts
    [level] = facts.levels.values()
    other = replace(facts, levels={"neon": level})
    with pytest.raises(NoGoodSide, match=r"no peak bytes of this model at the level .*; set CANDLE_PLAN_ISA .* neon"):
        find_memory(subject(), GoodFacts(other, "facts.toml", good_facts().entry))


def test_a_model_that_is_refused_without_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    compile = subjects.compile_stored

    def refusing(model: object, options: Options) -> object:
        if not options.optimize:
            raise CompileError([Diagnostic("CC0301", "refused")])
        return compile(model, options)  # type: ignore[arg-type]

    monkeypatch.setattr(subjects, "compile_stored", refusing)
    with pytest.raises(NoGoodSide, match="without optional passes, the compiler refuses the model: give a good side"):
        find_memory(replace(subject(), base=BASE))
