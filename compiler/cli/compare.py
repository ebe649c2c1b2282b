"""`candlec zoo compare`: what has changed between two files of results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import RIGHT, WRONG, Cell, console, errors, json_option, print_json, table
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.zoo.comparison import Change
    from compiler.zoo.records import Record, ResultName

_MARKS: dict[str, Cell] = {"worse": WRONG, "better": RIGHT, "": ""}


@click.command(cls=Verb, short_help="Show what has changed between two files of results.")
@click.argument("old", type=arguments.INPUT)
@click.argument("new", type=arguments.INPUT)
@json_option
@click.pass_context
def command(context: click.Context, old: Path, new: Path, as_json: bool) -> None:
    """Show what has changed between two files of results, OLD and NEW. `candlec zoo run --results` writes such files.

    OLD or NEW may also be a file of facts (`candlec zoo update --facts`). The name of such a file ends with .toml. A
    file may have results for pinned (fixed) shapes, for unpinned (dynamic) shapes, or for both. If OLD or NEW is a file
    of facts, the command compares only the kinds of shapes that both files have.

    The table begins with the most important changes. It marks a change with ✗ if NEW is worse, and with ✓ if it is
    better. The kinds of changes are:

    \b
    verdict  another verdict, or a model that is only in one of the files; also, whether INDEX.json or the baseline
             allows the verdict
    error    the difference from onnxruntime in multiples of the tolerance, or the rounding error of `zoo precision`,
             if it has changed by more than a tenth
    fact     a fact of the plans: `candlec zoo update --help` describes them
    time     two times. First, the time of a check, if it has changed by more than half and by at least a second. This
             time depends on the load of the machine. Second, the time of a plan in percent of onnxruntime's
             (`zoo run --time`), if it has changed by more than `zoo run` allows.

    Sizes, steps and steps on the host are worse if they grow. Other facts are neither worse nor better, such as the
    form of a kernel. Times are never marked.

    The exit code is 1 if something is worse.

    \b
    candlec zoo run --results before.jsonl
    candlec zoo run --results after.jsonl
    candlec zoo compare before.jsonl after.jsonl
    candlec zoo compare before.jsonl after.jsonl --json
    candlec zoo compare zoo.facts.toml after.jsonl
    """
    from compiler.zoo.comparison import changes, levels_apart

    before, after = records_of(old), records_of(new)
    if any(each.suffix == ".toml" for each in (old, new)):
        common = {name.task for name in before} & {name.task for name in after}
        before, after = ({name: each[name] for name in each if name.task in common} for each in (before, after))
    found = changes(before, after)
    is_right = not any(each.effect == "worse" for each in found)
    levels = levels_apart(before, after)
    if as_json:
        data = {"before": levels[0], "after": levels[1]} if levels else None
        print_json({"ok": is_right, "changes": [each.data for each in found], "levels": data})
    else:
        _show(found, len({name.model for name in {**before, **after}}))
        if levels:
            kinds = " and ".join(", ".join(each) for each in levels)
            said = (
                f"note: the files are of different levels of the processor, {kinds}, so their kernels were not compared"
            )
            errors.print(said, soft_wrap=True)
    context.exit(0 if is_right else 1)


def records_of(path: Path) -> dict[ResultName, Record]:
    """The records of a file of results or facts. If the file is another kind of file, the command ends."""
    from compiler.zoo.records import read_records

    try:
        return read_records(path)
    except ValueError as error:
        raise Failed(str(error)) from error


def _show(found: Sequence[Change], models: int) -> None:
    """Print the table, and the number of changes."""
    counted = f"{models} model{'s' * (models != 1)}"
    if not found:
        console.print(f"nothing has changed in {counted}", soft_wrap=True)
        return
    rows = ((_MARKS[each.effect], each.name.model, each.name.task, each.what, *each.texts) for each in found)
    table(("", "model", "check", "what", "before", "after"), rows)
    effects = Counter(each.effect for each in found)
    changes = f"{len(found)} change{'s' * (len(found) != 1)} in {counted}"
    console.print(f"{changes}: {effects['worse']} worse, {effects['better']} better", soft_wrap=True)
