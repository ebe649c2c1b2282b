"""PyTorch modules that a command takes as PACKAGE.MODULE:FACTORY: their export, and its options."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, errors, working
from compiler.cli.verbose import is_verbose

if TYPE_CHECKING:
    from compiler.accuracy.exported_check import ExportCheck
    from compiler.frontend.export_request import Exporter, Request

__all__ = ["Done", "How", "export_factory", "export_options", "facts", "is_factory", "model_file", "plan_name", "show"]

FORMS = "(module, arguments) or (module, arguments, dynamic)"
_EXPORTERS = ("auto", "dynamo", "torchscript")
_STDERR = 2


@dataclass(frozen=True)
class How:
    """The options of an export."""

    opset: int | None
    exporter: Exporter
    no_check: bool
    locate: bool

    @property
    def given(self) -> list[str]:
        """The options that differ from their defaults."""
        values = {
            "--opset": self.opset is not None,
            "--exporter": self.exporter != "auto",
            "--no-check": self.no_check,
            "--locate": self.locate,
        }
        return [option for option, is_given in values.items() if is_given]


@dataclass(frozen=True)
class Done:
    """An exported model: how often the check compared it, with which other arguments, and what the user should know."""

    runs: int
    other: str
    notes: tuple[str, ...]


def export_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--opset`, `--exporter`, `--no-check` and `--locate`, as the parameter `how`."""
    return grouped(
        "how",
        How,
        click.option("--opset", type=arguments.Whole(9), metavar="N", help="Opset of the model.  [default: PyTorch's]"),
        click.option(
            "--exporter",
            type=click.Choice(_EXPORTERS),
            default="auto",
            show_default=True,
            help="PyTorch's exporter. auto: torchscript if dynamo refuses the module.",
        ),
        click.option("--no-check", is_flag=True, help="Do not compare the model with the module."),
        click.option(
            "--locate", is_flag=True, help="If the model differs from the module, name the first part that differs."
        ),
    )(function)


def is_factory(text: str) -> bool:
    """Whether a text is PACKAGE.MODULE:FACTORY, and no file."""
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", text) is not None and not Path(text).exists()


def plan_name(factory: str) -> Path:
    """`package.module:factory` → `module.plan`, in the current folder."""
    return Path(factory.partition(":")[0].rpartition(".")[2] + ".plan")


@contextmanager
def model_file(model: Path, how: How) -> Iterator[tuple[Path, Done | None]]:
    """The file of a model. If `model` is the name of a factory, the file is a temporary one, with the factory's module.

    Raises:
        click.UsageError: there are options of an export, but `model` is a file.
    """
    if not is_factory(str(model)):
        if how.given:
            message = f"{how.given[0]} is an option for PACKAGE.MODULE:FACTORY, and {model} is a file: leave it out"
            raise click.UsageError(message, click.get_current_context())
        yield model, None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        yield path, export_factory(str(model), path, how, title=str(model))


def export_factory(factory: str, output: Path, how: How, *, title: str = "") -> Done:
    """Write the model of a factory's module to a file, and check it. Errors call the file by its title."""
    from compiler.frontend.export import write_model
    from compiler.frontend.export_request import ExportError

    if how.no_check and how.locate:
        raise click.UsageError("--locate needs the check: leave out --no-check", click.get_current_context())
    with working("importing the module"):
        request = _request(factory, how)
    with working("exporting"), _explained(factory), _partial_graphs_hidden():
        exported = write_model(request, output)
    if how.no_check:
        return Done(0, "", exported.notes)
    from compiler.accuracy.exported_check import check_model

    try:
        with working("comparing the model with the module"):
            checked: ExportCheck = check_model(exported, locate=how.locate)
    except ExportError as error:
        said = str(error)
        raise Failed(said.replace(str(output), title) if title else said) from error
    return Done(checked.runs, checked.other, (*exported.notes, *checked.notes))


def facts(done: Done | None) -> dict[str, Any]:
    """The result of the check, and the notes, for JSON. Without an export, there are none."""
    return {} if done is None else {"checked": done.runs, "notes": list(done.notes)}


def show(done: Done | None) -> None:
    """Print the result of the check, and the notes. Without an export, print nothing."""
    if done is None:
        return
    if done.runs:
        console.print(f"the model computes what the module computes{f', also with {done.other}' if done.other else ''}")
    for note in done.notes:
        errors.print(f"warning: {note}", style="yellow", soft_wrap=True)


def _request(factory: str, how: How) -> Request:
    """Call the factory, and make a request of its module and arguments. An error of the factory is wrong usage."""
    from compiler.frontend.export_request import Request

    module, given, *rest = _call(factory)
    dynamic = (rest[0] if rest else None) or None
    args, kwargs = ((), given) if isinstance(given, Mapping) else (given, {})
    return Request(module, args, kwargs, dynamic, opset=how.opset, exporter=how.exporter)


def _call(factory: str) -> tuple[Any, ...]:
    """The result of the factory. An error of the factory is wrong usage."""
    name, _, attribute = factory.partition(":")
    if not name or not attribute:
        raise _unusable(f"{factory!r} is not PACKAGE.MODULE:FACTORY")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(name), attribute)()
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "onnxscript"):
            message = f'this needs {error.name}, which is not installed: run pip install "candle-compiler[export]"'
            raise Failed(message) from error
        raise _unusable(f"{factory}: {type(error).__name__}: {error}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        kind = type(made).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise _unusable(f"{factory}() must return {FORMS}, but returned {article} {kind}")
    return made


def _unusable(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context())


@contextmanager
def _explained(factory: str) -> Iterator[None]:
    """Report errors of the module or of PyTorch as errors of the user, not of the compiler."""
    from compiler import ExportError

    try:
        yield
    except (ExportError, ModuleNotFoundError) as error:
        raise Failed(str(error)) from error
    except (TypeError, ValueError) as error:
        raise _unusable(f"{factory}: {error}") from error


@contextmanager
def _partial_graphs_hidden() -> Iterator[None]:
    """Hide the graphs and traces that PyTorch prints when an export fails, also from C++. --verbose shows them."""
    if is_verbose():
        yield
        return
    kept, nowhere = os.dup(_STDERR), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _STDERR)
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nowhere)
