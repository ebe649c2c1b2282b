"""The results that the public scoreboard of ONNX backends shows: `report.json`, from onnx's own runner.

`python -m tests.onnx_backend.scoreboard FOLDER` runs the tests on `compiler.backend`. The runner compares every value,
also random ones, which no two implementations share, and does not use the option `lower_3d`.

The format is that of https://github.com/onnx/backend-scoreboard, whose folder `results` has a folder for each backend.
"""

from __future__ import annotations

import json
import unittest
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from onnx.backend.test import BackendTest
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from compiler import backend

DEVICE = "_cpu"


class Results(unittest.TestResult):
    """The names of the tests, by result. The methods are those of unittest."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}

    def addSuccess(self, test: Any) -> None:
        """Count a test that passed."""
        self.names["passed"].append(_name(test))

    def addFailure(self, test: Any, err: Any) -> None:
        """Count a test with a wrong result, or one that the backend does not implement."""
        is_skipped = isinstance(err[1], BackendIsNotSupposedToImplementIt)
        self.names["skipped" if is_skipped else "failed"].append(_name(test))

    addError = addFailure

    def addSkip(self, test: Any, reason: str) -> None:
        """Count a test that does not apply."""
        self.names["skipped"].append(_name(test))


def _name(test: Any) -> str:
    return f"{type(test).__name__}::{test._testMethodName}"


def results() -> dict[str, list[str]]:
    """The names of all tests on the CPU, by result."""
    found = Results()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in BackendTest(backend, __name__).test_cases.values():
            for test in sorted(each for each in vars(case) if each.endswith(DEVICE)):
                case(test).run(found)
    return {result: sorted(names) for result, names in found.names.items()}


def report(names: dict[str, list[str]], now: datetime) -> dict[str, Any]:
    """The contents of `report.json`."""
    return {"date": now.strftime("%m/%d/%Y %H:%M:%S"), **names}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write FOLDER/report.json, and print how many tests pass."""
    names = results()
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report(names, datetime.now(timezone.utc)), indent=4)
    (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
    total = sum(map(len, names.values()))
    click.echo(f"{len(names['passed'])} of {total} pass as the scoreboard counts them: {folder / 'report.json'}")


if __name__ == "__main__":
    command()
