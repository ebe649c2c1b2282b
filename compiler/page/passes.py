"""What each pass of a compilation did and where, and what it almost did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from compiler.page.places import Places
    from compiler.rewrite.report import PassReport

__all__ = ["classes_of", "passes_data"]

JsonObject = dict[str, Any]


def passes_data(
    passes: Iterable[tuple[PassReport, float]], places: Places, about: Callable[[str], str]
) -> list[JsonObject]:
    """The passes in the order of their runs, each with its time in seconds and the groups of its rewrites.

    `about` describes a pass in a sentence. A pass that changed nothing has no groups. A rewrite is its place and its
    note. Near misses with the same rule and reason are a group.
    """
    return [_pass(report, seconds, places, about) for report, seconds in passes]


def classes_of(reports: Iterable[PassReport]) -> dict[str, str]:
    """The paths of PyTorch modules with their classes, as far as the passes know them."""
    found = list(reports)
    origins = [each.origin for report in found for each in report.fired]
    origins += [each.origin for report in found for each in report.missed]
    return {origin.module: origin.layer for origin in origins if origin.module and origin.layer}


def _pass(report: PassReport, seconds: float, places: Places, about: Callable[[str], str]) -> JsonObject:
    fired = _grouped(((each.rule,), (places.of(each.origin), each.note)) for each in report.fired)
    missed = _grouped(((each.rule, each.reason), places.of(each.origin)) for each in report.near_misses)
    return {
        "name": report.name,
        "about": about(report.name),
        "result": report.result,
        "before": report.nodes_before,
        "after": report.nodes_after,
        "seconds": seconds,
        "fired": [{"rule": rule, "about": report.rules.get(rule, ""), "places": found} for (rule,), found in fired],
        "missed": [
            {"rule": rule, "about": report.rules.get(rule, ""), "reason": reason, "places": found}
            for (rule, reason), found in missed
        ],
        "warnings": [str(each) for each in report.warnings],
    }


def _grouped(pairs: Iterable[tuple[tuple[str, ...], Any]]) -> Iterable[tuple[tuple[str, ...], Sequence[Any]]]:
    """The values of each key, in the order of the keys' first values."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups.items()
