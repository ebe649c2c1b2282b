"""`candlec ops`: the supported ONNX operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import click

from compiler.cli import arguments
from compiler.cli.output import console, errors, json_option, print_json, table
from compiler.cli.renamed import Verb
from compiler.cli.tables.placement import show_any_gpu
from compiler.errors import did_you_mean

EXPANDED = "(its ONNX function body)"
CONTRIB = "contrib/{}"


@click.command(cls=Verb)
@click.argument("names", nargs=-1, metavar="[OPERATOR]...")
@arguments.named_device_option("Show which ops would run on this device, and which on the CPU. No GPU is needed.")
@json_option
@click.pass_context
def command(context: click.Context, names: tuple[str, ...], device: str, as_json: bool) -> None:
    """List the supported ONNX operators, each with the newest version that the compiler supports.

    The column "family" names the file in compiler/lower/ that translates the operator to ops of plans, or the file in
    compiler/contrib/ that replaces it with other operators. With OPERATOR, the list has only these operators, and the
    exit code is 1 if the compiler does not support one of them.

    With --device cuda, the command lists the ops of plans instead. For each op, it shows the module of the CUDA kernel.
    If there is none, it shows where the op runs. The command does not look for a GPU, so the answer is the same for
    every GPU: cuda:7 means the same as cuda.

    \b
    candlec ops
    candlec ops Conv Einsum
    candlec ops --device cuda
    """
    if device != "cpu":
        _list_placements(context, names, device, as_json)
    every = _operators()
    rows = [row for row in every if not names or row[0] in names]
    missing = _unknown(names, {name for name, *_ in every})
    if as_json:
        listed = [dict(zip(("operator", "newest", "family", "domain"), row, strict=True)) for row in rows]
        print_json({"ok": not missing, "operators": listed, "missing": list(missing)})
    elif rows:
        table(("operator", ">newest version", "family", "domain"), ((n, str(v), f, d) for n, v, f, d in rows))
    for name, question in missing.items():
        errors.print(f"the compiler does not support {name}{question and f': {question}'}", style="red")
    if not as_json and not names:
        console.print(f"{len(rows)} operators")
    context.exit(1 if missing else 0)


WHERE = {
    "view": "device of its input: a view",
    "host": "host: such ops belong there",
    "no_kernel": "host: the device has no kernel",
}


def _list_placements(context: click.Context, names: tuple[str, ...], device: str, as_json: bool) -> None:
    """Print where the steps of each op of a plan run on a GPU."""
    import json

    from compiler import _runtime

    every = json.loads(_runtime.ops())
    rows = [(name, family, placement) for family, name, placement in every if not names or name in names]
    missing = _unknown(names, {name for _, name, _ in every})
    if as_json:
        listed = [{"op": name, "family": family, "placement": placement} for name, family, placement in rows]
        print_json({"ok": not missing, "ops": listed, "missing": list(missing)})
    elif rows:
        table(("plan op", "family", "where"), ((name, family, _where(placement)) for name, family, placement in rows))
        counts = Counter("kernel" if isinstance(placement, dict) else placement for *_, placement in rows)
        console.print(
            ", ".join(f"{count} {WHERE.get(where, 'with a kernel')}" for where, count in counts.most_common())
        )
        show_any_gpu(device)
    operators = {operator for operator, *_ in _operators()} if missing else ()
    for name, question in missing.items():
        said = f"`candlec check MODEL --device {device}` shows its plan ops" if name in operators else question
        errors.print(f"no plan has an op {name}{said and f': {said}'}", style="red")
    context.exit(1 if missing else 0)


def _unknown(names: Collection[str], known: Collection[str]) -> dict[str, str]:
    """The unknown names, with suggestions."""
    return {name: did_you_mean(name, known) for name in sorted({*names} - {*known})}


def _where(placement: str | dict[str, str]) -> str:
    return WHERE[placement] if isinstance(placement, str) else f"device, {placement['kernel']}.cu"


def _operators() -> list[tuple[str, int, str, str]]:
    """The name, newest version, family and domain of every operator, except those that only passes create."""
    from compiler import contrib
    from compiler.ir import onnx_schema
    from compiler.ir.graph import PLAN_DOMAIN
    from compiler.lower.node import LOWERINGS

    rows = [
        (name, lowering.newest, lowering.function.__module__.rpartition(".")[2], domain or "ai.onnx")
        for (domain, name), lowering in LOWERINGS.items()
        if domain != PLAN_DOMAIN
    ]
    rows += [
        (name, 1, CONTRIB.format(family), domain or "ai.onnx") for (domain, name), family in contrib.FAMILIES.items()
    ]
    rows += [
        (name, version, EXPANDED, domain or "ai.onnx")
        for domain, name, version in onnx_schema.function_operators()
        if (domain, name) not in LOWERINGS
    ]
    return sorted(rows, key=lambda row: (row[3], row[0]))
