"""The options for a folder of models, which its INDEX.json describes, and for the processes that check them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.compile_options import compiling_option
from compiler.cli.custom import custom_option
from compiler.cli.failure import Failed
from compiler.cli.option_groups import grouped
from compiler.zoo.download import CACHE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.compile_options import Compiling
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.index import Entry
    from compiler.zoo.task_runs import TaskSettings

__all__ = [
    "Selection",
    "cache_option",
    "entries_of",
    "folder_options",
    "known_differences",
    "known_facts",
    "lone_runner_options",
    "measures_option",
    "only_option",
    "runner_options",
    "tolerance_option",
    "zoo_option",
]


def only_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--only`, which selects models of a folder. `{}` in the help text stands for the forms of EXPR."""
    forms = "NAME, tag:TAG (a tag in INDEX.json), op:OPERATOR (models with this ONNX operator), @FILE (one EXPR a line)"
    return click.option("--only", multiple=True, metavar="EXPR", help=help_text.format(forms))


zoo_option = click.option(
    "--zoo",
    "folder",
    type=arguments.INPUT,
    default="models",
    show_default=True,
    metavar="FOLDER",
    help="Folder of models, with a file INDEX.json.",
)

cache_option = click.option(
    "--cache",
    type=arguments.INPUT,
    envvar=CACHE,
    metavar="FOLDER",
    help=f"Folder of the models that `candlec zoo fetch` downloads.  [default: {CACHE}, or in the "
    "user's cache folder: candle-compiler/zoo]",
)
"""The option `--cache`."""
measures_option = click.option(
    "--measures",
    type=arguments.INPUT,
    metavar="FILE",
    help="File with measures, in addition to those of the key `task` in INDEX.json.",
)
"""The option `--measures`."""
tolerance_option = click.option(
    "--tolerance",
    type=arguments.Finite(0),
    metavar="X",
    help="Tolerance of the models without a `tolerance` in INDEX.json: the largest allowed difference ÷ the largest "
    "element of the same group.  [default: by dtype, 1e-5 for float32]",
)
"""The option `--tolerance` for all models of a folder."""


@dataclass(frozen=True)
class Selection:
    """Models of a folder. If they are downloads, they are in the cache."""

    folder: Path
    only: tuple[str, ...]
    cache: Path | None

    def entries(
        self, settings: TaskSettings, measures: Path | None = None, tolerance: float | None = None
    ) -> list[Entry]:
        """The models that the expressions select, or all of them.

        A file of measures adds to those of the models. Models without a tolerance get this one.
        """
        found = entries_of(self.folder, self.only, settings, self.cache, measures)
        return [replace(each, tolerance=tolerance) if each.tolerance is None else each for each in found]

    def files(self, entries: Sequence[Entry]) -> list[Path]:
        """The files that the command reads."""
        return [self.folder / "INDEX.json", *(path for entry in entries for path in entry.files)]


folder_options = grouped(
    "selection",
    Selection,
    zoo_option,
    only_option("Use only these models: {}, or failed (those that failed in the file of --results). May be repeated."),
    cache_option,
)
"""The options that choose the folder, the models, and the cache of downloads, as the parameter `selection`."""


def _settings(
    jobs: int | None,
    timeout: float | None,
    memory_limit: int | None,
    results: Path | None,
    resume: bool,
    compiling: Compiling,
) -> TaskSettings:
    from compiler.processes.memory import is_measured
    from compiler.processes.run import Limits
    from compiler.zoo.task_runs import TaskSettings

    if resume and results is None:
        raise click.UsageError("--resume needs the file of the former results: add --results FILE")
    if memory_limit is not None and not is_measured():
        raise click.UsageError("only Linux reports the memory of a process: leave out --memory-limit")
    return TaskSettings(jobs, Limits(timeout, memory_limit), results, resume, compiling=compiling)


_jobs_option = click.option(
    "--jobs",
    type=arguments.Whole(1, arguments.MAX_THREADS),
    metavar="N",
    help="Number of models to check at a time, each in a process of its own.  "
    "[default: one per usable processor; 1 on a GPU]",
)
_process_options = (
    click.option(
        "--timeout",
        type=arguments.Finite(0, min_open=True),
        metavar="SECONDS",
        help="Limit the time of each model. A model that takes longer has the result `timed out`.",
    ),
    click.option(
        "--memory-limit",
        type=arguments.Size(),
        metavar="SIZE",
        help="Limit the memory of each model, for example to 4G. A model that takes more has the result "
        "`out of memory`.",
    ),
    click.option(
        "--results",
        type=arguments.OUTPUT,
        metavar="FILE",
        help="Write a line of JSON for each model to this file, as soon as the model is done.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Keep the results in the file of --results, except those of models that have changed since.",
    ),
    compiling_option,
    custom_option,
)
runner_options = grouped("settings", _settings, _jobs_option, *_process_options)
"""The options for the compilation and the processes of the models, as the parameter `settings`."""
lone_runner_options = grouped("settings", partial(_settings, None), *_process_options)
"""The same options without `--jobs`, for models that are timed one at a time."""


def entries_of(
    folder: Path,
    only: Sequence[str],
    settings: TaskSettings | None = None,
    cache: Path | None = None,
    measures: Path | None = None,
) -> list[Entry]:
    """The models of a folder that the expressions select, or all of them. Downloads are in the cache.

    A file of measures adds to those of the models.
    """
    from compiler.zoo.index import read_index
    from compiler.zoo.measures_file import with_measures
    from compiler.zoo.results import Results
    from compiler.zoo.select import FAILED, selected

    failed = None
    if settings is not None and settings.results is not None:
        failed = _valid(Results, settings.results).failed
        if settings.resume and FAILED in only:
            raise click.UsageError("--only failed checks models again: leave out --resume")
    try:
        entries = _valid(lambda path: selected(read_index(path, cache), only, failed), folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        advice = "INDEX.json lists the models of a folder: see `candlec zoo --help`"
        raise Failed(f"{error.filename}: {error.strerror}\n  help: {advice}") from error
    return list(_valid(lambda path: with_measures(entries, path, only), measures))


def known_differences(baseline: Path | None) -> dict[str, KnownDifference]:
    """The entries of a baseline by model; none without a baseline."""
    if baseline is None:
        return {}
    from compiler.zoo.baseline import read_baseline

    return dict(_valid(read_baseline, baseline))


def known_facts(path: Path | None, device: str) -> KnownFacts:
    """The facts in a file, which must be those of this kind of device; none without a file."""
    from compiler.zoo.facts import KnownFacts, kind_of

    kind = kind_of(device)
    if path is None:
        return KnownFacts(kind)
    from compiler.zoo.facts_file import read_facts

    known: KnownFacts = _valid(read_facts, path)
    if known.device != kind:
        raise Failed(f"{path} has the facts of {known.device}, not of {kind}: name another file")
    return known


def _valid(read: Callable[[Any], Any], path: Path | None) -> Any:
    """Read a file with a function. If the file is invalid, its error ends the command."""
    try:
        return read(path)
    except ValueError as error:
        raise Failed(str(error)) from error
