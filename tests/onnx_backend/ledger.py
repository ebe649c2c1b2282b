"""The tests that fail, each with its reason: `failing.toml`.

`python -m tests.onnx_backend.ledger` runs every test and compares; with `--write` it brings the file up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from compiler import CompileError
from tests.onnx_backend.cases import load_cases, run_case

FILE = Path(__file__).with_name("failing.toml")


def read() -> dict[str, str]:
    """Test name → why it fails."""
    return tomllib.loads(FILE.read_text()) if FILE.exists() else {}


def failures() -> dict[str, Exception]:
    """Test name → how it fails, in order."""
    failing = {}
    for name, case in sorted(load_cases().items()):
        try:
            run_case(case)
        except Exception as error:
            failing[name] = error
    return failing


def reason_of(error: Exception) -> str:
    """One line that says why a test fails."""
    if isinstance(error, CompileError):
        return "; ".join(dict.fromkeys(diagnostic.message for diagnostic in error.diagnostics))[:200]
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:200]


def renewed(known: Mapping[str, str], failing: Mapping[str, Exception]) -> dict[str, str]:
    """The ledger of these failures: what the product says, but a wrong result keeps the reason written for it."""
    return {
        name: known[name] if isinstance(error, AssertionError) and name in known else reason_of(error)
        for name, error in failing.items()
    }


def differences(known: Mapping[str, str], failing: Mapping[str, Exception]) -> Iterator[str]:
    """What is wrong with the ledger, a line each."""
    for name in sorted({*known, *failing}):
        if name not in load_cases():
            yield f"{name}: there is no such test"
        elif name not in failing:
            yield f"{name}: it passes"
        elif name not in known:
            yield f"{name}: it fails, and has no line: {reason_of(failing[name])}"


@click.command()
@click.option(
    "--check/--write", default=True, help="Fail when the ledger is not what happens, or make it so.  [default: --check]"
)
@click.pass_context
def command(context: click.Context, check: bool) -> None:
    """Run every test of the onnx package and compare what fails with the ledger failing.toml.

    A line of a test that passes or does not exist is an error, and so is a failure without a line. --write drops these
    lines, gives each refusal the words of the compiler, and keeps the reasons that are written for wrong results.

    \b
    python -m tests.onnx_backend.ledger
    python -m tests.onnx_backend.ledger --write
    """
    known, failing = read(), failures()
    wrong = list(differences(known, failing))
    for line in wrong:
        click.echo(line)
    click.echo(f"{len(load_cases()) - len(failing)} of {len(load_cases())} pass")
    if not check:
        lines = (f"{name} = {json.dumps(why, ensure_ascii=False)}\n" for name, why in renewed(known, failing).items())
        FILE.write_text("".join(lines))
    elif wrong:
        click.echo(f"{FILE.name} is not up to date: mend what fails, or review and --write it", err=True)
        context.exit(1)


if __name__ == "__main__":
    command()
