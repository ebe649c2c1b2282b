"""The page of files of results: its checks, models, facts, differences, profiles and histories, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.accuracy.precision import Errors
from compiler.atomic_files import write_whole
from compiler.page.history import Run, history_of, level_of, milliseconds_of
from compiler.page.write import html_of
from compiler.zoo.outcome import SHAPES, Result, variants
from compiler.zoo.outcome_judgment import outcomes_of
from compiler.zoo.profile_model import COLUMNS
from compiler.zoo.records import PRECISION, ResultName
from compiler.zoo.results import ending_of
from compiler.zoo.task_arguments import Check, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["page_data", "write_page"]

JsonObject = dict[str, Any]


def write_page(path: Path, title: str, results: Mapping[str, Sequence[dict[str, Any]]]) -> int:
    """Write the page of files of results, which have names, the oldest first. Returns the number of models.

    Raises:
        OSError: the file cannot be written.
        ValueError: the results have no check of a model, or a number that is not finite.
    """
    data = page_data(title, [Run(name, lines) for name, lines in results.items()])
    if not data["models"]:
        raise ValueError("no file has a check of a model: `candlec zoo run --results FILE` writes checks")
    write_whole(path, html_of(data).encode())
    return len(data["models"])


def page_data(title: str, runs: Sequence[Run]) -> dict[str, Any]:
    """The data of the page, from the oldest file of results to the newest.

    The state of a check is that in the newest file with this kind of check. `tasks` lists the kinds, each with its
    `variants` and the index of its `run`. A model whose check is only in an older file has the verdict `missing`.
    """
    newest = {task: index for index, run in enumerate(runs) for task in run.tasks}
    tasks = sorted(newest, key=lambda task: (task.partition(", ")[2], SHAPES.index(_shapes_of(task)), task))
    current = [runs[index] for index in sorted(set(newest.values()), reverse=True)]
    tags = {line["model"]: line["tags"] for run in runs for line in run.lines if "tags" in line}
    details = {task: dict(_details(task, runs[index].lines)) for task, index in newest.items()}
    problems, precision = _problems(current), _precision(runs)
    models = dict.fromkeys(name.model for run in [*current, *runs] for name in run.checks)
    return {
        "title": title,
        "runs": [run.name for run in runs],
        "tasks": [{"name": task, "variants": _variants_of(task), "run": newest[task]} for task in tasks],
        "models": [
            {
                "name": model,
                "tags": tags.get(model, []),
                "problems": problems.get(model, []),
                "precision": precision.get(model),
                "checks": {
                    task: _check(ResultName(model, task), runs, newest[task], details[task].get(model, {}))
                    for task in tasks
                    if any(ResultName(model, task) in run.checks for run in runs)
                },
            }
            for model in models
        ],
    }


def _check(name: ResultName, runs: Sequence[Run], newest: int, details: JsonObject) -> JsonObject:
    """The state of a check in its newest file, and its history."""
    record = runs[newest].checks.get(name)
    if record is None:
        return {"result": "missing", "verdict": "missing", "ok": None, "history": history_of(name, runs, None)}
    result, facts = record.result, record.facts
    verdict = result.verdict if isinstance(result, Result) else result
    pace = runs[newest].pace(name, level_of(facts))
    return {
        "result": str(result),
        "verdict": verdict,
        "ok": record.is_acceptable,
        "facts": facts.data if facts else None,
        "time": pace.fact if pace else None,
        "history": history_of(name, runs, facts),
        **details,
    }


def _details(task: str, lines: Iterable[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    """The outcomes of each model's check, and its profile if there is one."""
    profiles: dict[str, JsonObject] = {}
    for line in lines:
        profile = Profile.named(line["model"], line["what"])
        if profile and f"{profile.shapes}, {profile.device}" == task and line["ok"]:
            profiles[line["model"]] = _profile(ending_of(line).result)
    for line in lines:
        check = Check.named(line["model"], line["what"])
        if check and (shapes := _shapes_of(task)) in check.shapes and f"{shapes}, {check.device}" == task:
            outcomes = [each.unjudged for each in outcomes_of(check, ending_of(line))[shapes]]
            yield line["model"], {"outcomes": outcomes, "profile": profiles.get(line["model"])}


def _profile(result: JsonObject) -> JsonObject:
    """A profile with a list for each field of the steps, which takes less space."""
    names = (*COLUMNS, "layer")
    steps = {name: [step[name] for step in result["steps"]] for name in names}
    return {**result, "milliseconds": milliseconds_of(result), "steps": steps}


def _problems(current: Iterable[Run]) -> dict[str, list[str]]:
    """The models whose time, profile or rounding error is not acceptable, and why."""
    found: dict[str, list[str]] = {}
    for line in (line for run in current for line in run.lines if not line["ok"]):
        if not Check.named(line["model"], line["what"]):
            sentence = ending_of(line).sentence or line["result"]
            found.setdefault(line["model"], []).append(f"{line['what']}: {sentence}")
    return found


def _precision(runs: Iterable[Run]) -> dict[str, JsonObject]:
    """The rounding errors of the plan and of onnxruntime, of each model, from the newest file."""
    lines = [line for run in runs for line in run.lines if line["what"] == PRECISION]
    results = {line["model"]: ending_of(line).result for line in lines}
    return {model: vars(Errors(**result)) for model, result in results.items() if result}


def _shapes_of(task: str) -> Any:
    return task.partition(", ")[0]


def _variants_of(task: str) -> list[str]:
    return [str(variant) for variant in variants(task.partition(", ")[2])]
