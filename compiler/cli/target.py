"""The files that `candlec compile` writes."""

from __future__ import annotations

from pathlib import Path

import click

from compiler.cli import arguments, factory

__all__ = ["check_page", "plan_file"]


def plan_file(model: Path, output: Path | None, report: Path | None) -> Path:
    """The file for the plan. Refuse files that the command must not overwrite, and wrong suffixes."""
    is_file = not factory.is_factory(str(model))
    target = output or (_default_output(model) if is_file else factory.plan_name(str(model)))
    _check_outputs(model if is_file else None, {"--output": target, "--report": report})
    _check_suffixes(output, report)
    return target


def _default_output(model: Path) -> Path:
    if not model.name:
        raise click.BadParameter(f"{str(model)!r} is not a file", param_hint="MODEL")
    if model.suffix == ".plan" and model.is_file():
        from compiler.frontend.load import load_model

        load_model(model)  # refuses a plan
        raise click.UsageError(
            f"the model has the suffix of plans: name the plan with --output, such as -o {model}.plan"
        )
    return model.with_suffix(".plan")


def _check_suffixes(output: Path | None, report: Path | None) -> None:
    """Refuse a name that makes another program take a plan for a model, or a report for something else."""
    if output is not None and output.suffix == ".onnx":
        raise click.BadParameter(f"{output} has the suffix of models: name a .plan file", param_hint="--output")
    check_page(report)


def check_page(report: Path | None) -> None:
    """Refuse a name by which no browser opens a page."""
    is_file = report is not None and (report.is_file() or not report.exists())  # and no /dev/stdout
    if report is not None and is_file and report.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{report} is no .html file, and the report is a web page", param_hint="--report")


def _check_outputs(model: Path | None, outputs: dict[str, Path | None]) -> None:
    """Refuse to overwrite the model or its files of weights."""
    from compiler.frontend.external import files_of_weights

    exist = any(path is not None and path.is_file() for path in outputs.values())
    files = [] if model is None else [model, *(files_of_weights(model) if exist else ())]
    arguments.check_outputs(outputs, files)
