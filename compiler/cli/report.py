"""The report of `candlec compile`: the options of the page, and the runs that it asks for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, shape_text, working, write_text
from compiler.cli.streams import encodable
from compiler.cli.verify import output_data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler import Plan
    from compiler.accuracy.compare import Report
    from compiler.cli.input_options import Given
    from compiler.rewrite.report import PassReport

__all__ = ["Reporting", "pass_summary", "report_options", "show_verified", "verified_data"]

_OF_ANOTHER_FILE = {"fold_indices": "fold_constants"}
"""Passes that have the file of another pass."""


@dataclass(frozen=True)
class Reporting:
    """The page to write, and whether it needs a run of the plan: to time its steps, or to compare its outputs."""

    report: Path | None
    is_profiled: bool
    is_verified: bool

    @property
    def runs(self) -> bool:
        """Whether the report needs a run."""
        return self.is_profiled or self.is_verified

    def check_usage(self, given: Given, *, needs_inputs: bool) -> None:
        """Refuse a run without a report, and inputs if neither a run nor another option needs them."""
        if not (self.runs or needs_inputs):
            given.refuse("--precision auto, --profile and --verify")
        if self.runs and self.report is None:
            option = "--profile" if self.is_profiled else "--verify"
            raise click.UsageError(f"{option} writes to the report: add --report FILE.html")

    def write(
        self, model: Path, file: Path, plan: Plan, passes: Sequence[tuple[PassReport, float]], given: Given
    ) -> Report | None:
        """Write the page, if there is a path for it. Returns the comparison with onnxruntime, if one was asked for.

        `file` is the file of the `model`, which may be a factory.
        """
        if self.report is None:
            return None
        import compiler
        from compiler.page.report import Compilation, report_data
        from compiler.page.write import html_of
        from compiler.zoo.profile_model import profile_of

        session = compiler.load(plan)
        inputs = given.arrays(session.inputs) if self.runs else {}
        profile = verified = None
        with given.suggest_sizes(session.inputs), working(f"running the plan of {model}"):
            if self.is_profiled:
                profile = profile_of(plan, session, inputs)
            if self.is_verified:
                verified = compiler.verify(file, plan, inputs)
        said = _described(inputs, given) if self.runs else ""
        made = Compilation(encodable(model.name), plan, passes, session, profile, verified, said)
        write_text(self.report, html_of(report_data(made, pass_summary), "report"))
        return verified


report_options = grouped(
    "reporting",
    Reporting,
    click.option(
        "--report",
        type=arguments.OUTPUT,
        metavar="FILE.html",
        help="Write an HTML page about the compilation: what each pass did and where, and the cost of each module.",
    ),
    click.option(
        "--profile", "is_profiled", is_flag=True, help="Time the steps of the plan over ten runs, for the report."
    ),
    click.option(
        "--verify",
        "is_verified",
        is_flag=True,
        help="Compare the outputs with onnxruntime's, for the report. The exit code is 1 if they differ.",
    ),
)


def pass_summary(name: str) -> str:
    """The first paragraph of the docstring of a pass's module; an empty text for the loading of the model."""
    if name == "load":
        return ""
    module = importlib.import_module(f"compiler.passes.{_OF_ANOTHER_FILE.get(name, name)}")
    return " ".join((module.__doc__ or "").split("\n\n")[0].split())


def show_verified(verified: Report | None) -> None:
    """Print how the outputs compare with onnxruntime's, if the report compares them."""
    if verified is not None:
        style = "green" if verified.equal else "yellow" if verified.ok else "red"
        console.print(verified.summary, style=style, soft_wrap=True)


def verified_data(verified: Report | None) -> dict[str, Any]:
    """The comparison as JSON; empty without one."""
    return {} if verified is None else {"outputs": [output_data(each) for each in verified.outputs]}


def _described(inputs: Mapping[str, Any], given: Given) -> str:
    """The inputs of a run in words."""
    import numpy as np

    if given.is_random:
        shapes = ", ".join(f"{name} {shape_text(np.shape(value))}" for name, value in inputs.items())
        return f"random inputs (seed {given.seed}): {shapes}"
    return f"the inputs of {', '.join(file.name for file in given.files)}"
