"""The report of the passes as one self-contained HTML page."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING

from compiler.cli.output import megabytes
from compiler.plan.show import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from compiler import Plan
    from compiler.rewrite.report import PassReport

__all__ = ["page"]

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; } th, td { padding: .2em 1em .2em 0; text-align: left; }
th { border-bottom: 1px solid #999; } td.n { text-align: right; } summary { cursor: pointer; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { overflow-x: auto; background: #f6f6f6; padding: 1em; }
.quiet { color: #888; }
"""


def page(model: Path, plan: Plan, reports: Sequence[PassReport]) -> str:
    """The page: each pass with its rewrites and near misses, then the plan's steps."""
    before = next((report.nodes_before for report in reports if report.name != "load"), 0)
    steps = len(plan.document["main"]["steps"])
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(model.name)}</title>',
            f"<style>{STYLE}</style><h1>{escape(model.name)}</h1>",
            f"<p>{before} nodes became {steps} steps; the plan has {megabytes(len(plan.data))}.</p>",
            "<h2>Passes</h2><table><tr><th>pass<th>nodes before<th>after<th>near misses<th>what it did</tr>",
            *(_row(report) for report in reports),
            "</table>",
            *(_details(report) for report in reports if report.fired or report.near_misses),
            f"<h2>Plan</h2><pre>{escape(show(plan))}</pre></html>\n",
        ]
    )


def _row(report: PassReport) -> str:
    quiet = "" if report.changed else ' class="quiet"'
    numbers = (report.nodes_before, report.nodes_after, len(report.near_misses))
    cells = "".join(f'<td class="n">{each}' for each in numbers)
    done = f"{report.result}: {len(report.fired)}" if report.fired else ""
    return f"<tr{quiet}><td>{escape(report.name)}{cells}<td>{escape(done)}</tr>"


def _details(report: PassReport) -> str:
    fired = _grouped((each.rule, ": ".join(filter(None, [str(each.origin), each.note]))) for each in report.fired)
    missed = _grouped((f"{each.rule}: {each.reason}", str(each.origin)) for each in report.near_misses)
    names = {each.rule for each in report.fired} | {each.rule for each in report.near_misses}
    return "\n".join(
        [
            f"<h3>{escape(report.name)}</h3>",
            *(f"<p><b>{escape(name)}</b>: {escape(report.rules[name])}</p>" for name in report.rules if name in names),
            *(_list(f"{rule}, {len(places)} times", places) for rule, places in fired.items()),
            *(_list(f"not {rule}, {len(places)} times", places) for rule, places in missed.items()),
        ]
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _list(title: str, places: Sequence[str]) -> str:
    items = "".join(f"<li><code>{escape(place)}</code>" for place in places)
    return f"<details><summary>{escape(title)}</summary><ul>{items}</ul></details>"
