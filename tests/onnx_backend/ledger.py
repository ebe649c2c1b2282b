"""The tests that fail: `failing.toml` lists the reason for each, and the largest difference of a wrong result.

`python -m tests.onnx_backend.ledger` runs every test and compares; with `--write` it brings the file up to date.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from compiler import CompileError, Options
from tests.onnx_backend.cases import Differs, load_cases, run_case

FILE = Path(__file__).with_name("failing.toml")
UNLOWERED = frozenset(["test_col2im_5d"])
"""The tests of operators of three spatial dimensions that fail also with the option `lower_3d`."""


class Line(NamedTuple):
    """The reason why a test fails; if only its values are wrong, also the largest allowed difference."""

    reason: str
    off: float | None = None


def read() -> dict[str, Line]:
    """The ledger: test name → its line."""
    lines = tomllib.loads(FILE.read_text()) if FILE.exists() else {}
    return {name: Line(line) if isinstance(line, str) else Line(**line) for name, line in lines.items()}


def write(lines: Mapping[str, Line]) -> None:
    """Writes the ledger."""
    FILE.write_text("".join(f"{name} = {_toml(line)}\n" for name, line in lines.items()))


def _toml(line: Line) -> str:
    reason = json.dumps(line.reason, ensure_ascii=False)
    return reason if line.off is None else f"{{ off = {line.off:g}, reason = {reason} }}"


def lowered(lines: Mapping[str, Line]) -> set[str]:
    """The tests of the ledger that pass with the option `lower_3d`."""
    return {name for name, line in lines.items() if line.reason.startswith("3-D ")} - UNLOWERED


def failures(options: Options | None = None) -> dict[str, Exception]:
    """Test name → how it fails, in order."""
    failing = {}
    for name, case in sorted(load_cases().items()):
        try:
            run_case(case, options)
        except Exception as error:
            failing[name] = error
    return failing


def reason_of(error: Exception) -> str:
    """One line that says why a test fails."""
    if isinstance(error, CompileError):
        return "; ".join(dict.fromkeys(diagnostic.message for diagnostic in error.diagnostics))[:200]
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:200]


def renewed(known: Mapping[str, Line], failing: Mapping[str, Exception]) -> dict[str, Line]:
    """The ledger of these failures, with the errors' messages. The entry of a wrong result keeps its reason."""
    return {
        name: Line(
            known[name].reason if isinstance(error, AssertionError) and name in known else reason_of(error),
            _rounded_up(error.off) if isinstance(error, Differs) else None,
        )
        for name, error in failing.items()
    }


def _rounded_up(value: float) -> float:
    """Rounds up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def contradiction(line: Line, error: Exception) -> str:
    """How a failure differs from the line of its test; empty if the line describes it."""
    off = error.off if isinstance(error, Differs) else None
    if (off is None) != (line.off is None):
        return f"it fails in another way than its line says: {reason_of(error)}"
    if off is not None and line.off is not None and not off <= line.off:
        return f"it is off by {off:g}, and its line allows {line.off:g}"
    return ""


def differences(known: Mapping[str, Line], failing: Mapping[str, Exception]) -> Iterator[str]:
    """The errors of the ledger, one line each."""
    for name in sorted({*known, *failing}):
        if name not in load_cases():
            yield f"{name}: there is no such test"
        elif name not in failing:
            yield f"{name}: it passes"
        elif name not in known:
            yield f"{name}: it fails, and has no line: {reason_of(failing[name])}"
        elif wrong := contradiction(known[name], failing[name]):
            yield f"{name}: {wrong}"


@click.command()
@click.option("--check/--write", default=True, help="Fail if the ledger is outdated, or update it.  [default: --check]")
@click.option("--lower-3d", is_flag=True, help="Compile with the option lower_3d: the tests that need it must pass.")
@click.pass_context
def command(context: click.Context, check: bool, lower_3d: bool) -> None:
    """Run every test of the onnx package, and compare the failures with the ledger failing.toml.

    Errors are: a line of a test that passes or does not exist, a failure without a line, and a result with a larger
    difference than its line allows. --write removes lines of tests that pass, copies the compiler's message for each
    refusal, and keeps the reasons for wrong results.

    \b
    python -m tests.onnx_backend.ledger
    python -m tests.onnx_backend.ledger --write
    python -m tests.onnx_backend.ledger --lower-3d
    """
    known, failing = read(), failures(Options(lower_3d=lower_3d))
    if lower_3d:
        if not check:
            raise click.UsageError("--write writes the failures without --lower-3d: leave it out")
        known = {name: line for name, line in known.items() if name not in lowered(known)}
    wrong = list(differences(known, failing))
    for line in wrong:
        click.echo(line)
    click.echo(f"{len(load_cases()) - len(failing)} of {len(load_cases())} pass")
    if not check:
        write(renewed(known, failing))
    elif wrong:
        click.echo(f"{FILE.name} is not up to date: fix the failures, or --write it and review it", err=True)
        context.exit(1)


if __name__ == "__main__":
    command()
