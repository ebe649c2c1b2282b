"""The results of `candlec bisect` as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from compiler.cli.output import console, print_json, table
from compiler.cli.verify import ADVICE_ON_INPUTS, layer_data, output_data, show_step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.bisect.crash import Crash
    from compiler.bisect.error import WrongResult
    from compiler.bisect.extract import Extracted
    from compiler.bisect.halving import Culprit
    from compiler.bisect.result import SearchResult

__all__ = ["show_crash", "show_error", "show_found"]

MOST_PLACES = 10


def show_error(
    model: Path, wrong: WrongResult, part: Extracted | None, as_json: bool, *, is_random: bool, good: Path | None = None
) -> None:
    """Print where the results differ from onnxruntime's, or from those of an older plan."""
    report, step = wrong.report, wrong.step
    summary = report.summary if good is None else report.summary.replace("onnxruntime's", f"{good}'s")
    if as_json:
        document = {
            "ok": report.ok,
            "what": "error",
            "outputs": [output_data(each) for each in report.outputs],
            "pass": _culprit_data(wrong.culprit),
            "step": None if step is None else layer_data(step),
            "files": [] if part is None else [str(each) for each in part.files],
            "files_differ": None if part is None else part.differs,
        }
        print_json(document)
        return
    if report.ok:
        console.print(f"nothing is wrong with the plan of {model}: {summary}", style="green", soft_wrap=True)
        return
    console.print(f"the plan of {model} is wrong: {summary}", style="red", soft_wrap=True)
    _show_culprit(wrong.culprit, "the plan is different")
    console.print()
    if step is None:
        console.print(
            f"no intermediate value that both the plan and {good or 'the model'} have differs", soft_wrap=True
        )
    else:
        show_step(step)
    if part is not None:
        _show_part(part)
    if is_random:
        console.print(ADVICE_ON_INPUTS, soft_wrap=True)


def _show_part(part: Extracted) -> None:
    """Print the files of the small model, and whether they show the difference."""
    if not part.files:
        console.print(f"no files: {part.problem}", soft_wrap=True)
        return
    console.print(f"wrote {', '.join(map(str, part.files))}", soft_wrap=True)
    if not part.differs:
        reason = part.problem or "the plan of this part of the model equals onnxruntime's result"
        console.print(f"the files do not show the difference: {reason}", style="yellow", soft_wrap=True)


def show_crash(model: Path, crash: Crash | None, as_json: bool, *, is_random: bool) -> None:
    """Print how the model crashes."""
    if as_json:
        found = {} if crash is None else {"phase": crash.phase, "message": crash.message, "reference": crash.reference}
        culprit = None if crash is None else crash.culprit
        print_json({"ok": crash is None, "what": "crash", **found, "pass": _culprit_data(culprit)})
        return
    if crash is None:
        console.print(f"nothing is wrong: {model} compiles, and its plan runs", style="green", soft_wrap=True)
        return
    doing = "compiling" if crash.phase == "compile" else "running the plan of"
    console.print(f"{doing} {model} fails: {crash.message}", style="red", soft_wrap=True)
    _show_culprit(crash.culprit, "it fails")
    if crash.reference:
        console.print(f"{crash.reference}\n  help: correct the inputs or the model, not the plan", soft_wrap=True)
    if is_random and crash.phase == "run":
        console.print("  help: give real inputs with --input, because a run may fail on random ones", soft_wrap=True)


def _show_culprit(culprit: Culprit | None, what: str) -> None:
    """Print the pass and the places that it rewrote."""
    if culprit is None:
        console.print(f"{what} without optional passes too, so no optional pass is the cause", soft_wrap=True)
        return
    console.print(f"{what} as soon as this optional pass runs: {culprit.name}", soft_wrap=True)
    if culprit.others:
        console.print(f"  or one of those before it: {', '.join(culprit.others)}", soft_wrap=True)
    _show_places(f"{culprit.result}: {len(culprit.places)}", [str(each) for each in culprit.places])


def _culprit_data(culprit: Culprit | None) -> dict[str, Any] | None:
    """A pass as JSON."""
    if culprit is None:
        return None
    places = [asdict(each) for each in culprit.places[:MOST_PLACES]]
    more = {"result": culprit.result, "count": len(culprit.places), "places": places}
    return {"name": culprit.name, "others": list(culprit.others), **more}


def show_found(model: Path, found: SearchResult, as_json: bool) -> None:
    """Print the pass and the step that change the memory, the time or the steps of a plan."""
    if as_json:
        print_json(_found_data(found))
        return
    if found.is_unclear:
        console.print(f"unclear: {found.said}: the noise hides whether the plan of {model} is slower", style="yellow")
        console.print("  help: close other programs, or choose --threads 1, and run the command again", soft_wrap=True)
        return
    if not found.is_wrong:
        console.print(f"nothing is wrong with the plan of {model}: {found.said}", style="green", soft_wrap=True)
        return
    console.print(f"the plan of {model} has changed: {found.said}", style="red", soft_wrap=True)
    _show_cause(found)
    if found.step is not None:
        console.print(f"the first step that differs: {_step_text(found)}", soft_wrap=True)
    if found.changes:
        from compiler.zoo.drift import text_of

        console.print()
        rows = ((name, text_of(old), text_of(new)) for name, old, new in found.changes)
        table(("fact", "before", "after"), rows)


def _show_cause(found: SearchResult) -> None:
    """Print the pass and its rewrites, or why there is none."""
    if found.cause is None:
        console.print(found.no_cause, soft_wrap=True)
        return
    culprit = found.cause.culprit
    console.print(f"the pass: {culprit.name}: {found.cause.why}", soft_wrap=True)
    if culprit.others:
        console.print(f"  other candidates: {', '.join(culprit.others)}", soft_wrap=True)
    if culprit.places:
        _show_places(f"{culprit.result}: {len(culprit.places)}", [str(each) for each in culprit.places])
    missed = [f"{each.origin}: {each.reason}" for each in found.cause.missed]
    if missed:
        _show_places(f"near misses: {len(missed)}", missed)


def _show_places(heading: str, places: Sequence[str]) -> None:
    """Print the first places below a heading."""
    console.print(f"  {heading}", soft_wrap=True)
    for each in places[:MOST_PLACES]:
        console.print(f"  --> {each}", soft_wrap=True)
    if (more := len(places) - MOST_PLACES) > 0:
        console.print(f"  --> … and {more} more", soft_wrap=True)


def _step_text(found: SearchResult) -> str:
    assert found.step is not None
    place = f"step {found.step.index}, {found.step.op}   {found.step.origin}"
    return f"{place}\n  {found.step.note}" if found.step.note else place


def _found_data(found: SearchResult) -> dict[str, Any]:
    """The result of a search as JSON."""
    cause = found.cause
    blamed = None
    if cause is not None:
        missed = [{"rule": each.rule, "origin": str(each.origin), "reason": each.reason} for each in cause.missed]
        blamed = {**(_culprit_data(cause.culprit) or {}), "why": cause.why, "missed": missed[:MOST_PLACES]}
    return {
        "ok": not found.is_wrong,
        "what": found.what,
        "unclear": found.is_unclear,
        "said": found.said,
        "numbers": found.numbers,
        "pass": blamed,
        "no_pass": found.no_cause,
        "step": None if found.step is None else asdict(found.step),
        "changes": [dict(zip(("fact", "before", "after"), each, strict=True)) for each in found.changes],
    }
