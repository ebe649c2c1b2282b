"""Arguments that several verbs share: files to write, files of arrays, sizes of symbols, the device."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from compiler.cli.failure import Failed
from compiler.cli.output import errors, shape_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler import TensorInfo

__all__ = ["OUTPUT", "device_option", "given_inputs", "input_option", "pin_option", "size_option", "threads_option"]


MAX_THREADS = 1024
"""The runtime's own bound, which is not loaded for a list of options."""


class OutputFile(click.Path):
    """A file to write. That it can be is found out before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = super().convert(value, param, ctx)
        folder = Path(value).parent
        if not folder.is_dir():
            self.fail(f"there is no folder {str(folder)!r}", param, ctx)
        return path


OUTPUT = OutputFile(dir_okay=False, writable=True, path_type=Path)


def input_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--input`, which may be repeated."""
    help_text = "An input as NAME=FILE.npy, or all of them in an .npz or .safetensors file. May be repeated."
    return click.option("--input", "inputs", multiple=True, metavar="INPUT", help=help_text)(function)


def pin_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--dim` of what compiles, which may be repeated."""
    help_text = "Compile for one size of a symbolic dimension, as batch=1. May be repeated."
    return click.option("--dim", "sizes", multiple=True, metavar="NAME=N", callback=_dims, help=help_text)(function)


def size_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--dim` of what runs, which may be repeated."""
    help_text = "The size of a symbolic dimension of the random inputs, as batch=1. May be repeated."
    return click.option("--dim", "sizes", multiple=True, metavar="NAME=N", callback=_dims, help=help_text)(function)


def device_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--device`."""
    kinds = click.Choice(["cpu", "cuda", "auto"])
    return click.option("--device", type=kinds, default="cpu", show_default=True, help="Where to run.")(function)


def threads_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--threads`."""
    help_text = "Threads of a run.  [default: one a core]"
    return click.option("--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help=help_text)(function)


def _dims(_context: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """`("batch=1",)` → `{"batch": 1}`."""
    sizes = {}
    for value in values:
        name, _, size = value.rpartition("=")
        if not name or not size.isdecimal() or int(size) == 0:
            raise click.BadParameter(f"{value!r} is not NAME=N with a positive number")
        sizes[name] = int(size)
    return sizes


def given_inputs(
    declared: Sequence[TensorInfo], files: Sequence[str], sizes: dict[str, int], seed: int = 0
) -> dict[str, Any]:
    """The arrays of the `--input` files; without any, random ones, of which is told."""
    from compiler.samples import random_inputs

    if files and sizes:
        raise click.UsageError("--dim is for random inputs: those of --input have their sizes")
    if files:
        return _read_inputs(files)
    try:
        made = random_inputs(declared, sizes, seed)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--dim") from None
    shapes = ", ".join(f"{name} {shape_text(np.shape(value))}" for name, value in made.items())
    errors.print(f"No input given: using random ones (seed {seed}): {shapes}", style="dim", soft_wrap=True)
    return made


def _read_inputs(arguments: Sequence[str]) -> dict[str, Any]:
    """The arrays that `--input` arguments name."""
    inputs: dict[str, Any] = {}
    for argument in arguments:
        name, _, file = argument.rpartition("=")
        if name and not Path(argument).exists():
            inputs[name] = _read_one(Path(file))
        else:
            inputs.update(_read_all(Path(argument)))
    return inputs


def _read_one(path: Path) -> Any:
    if path.suffix != ".npy":
        raise click.BadParameter(f"{path}: NAME=FILE takes an .npy file", param_hint="--input")
    return _load(path)


def _read_all(path: Path) -> dict[str, Any]:
    match path.suffix:
        case ".npz":
            return _load(path)  # type: ignore[no-any-return]
        case ".safetensors":
            return _load_safetensors(path)
    message = f"{path} is neither NAME=FILE.npy nor an .npz or .safetensors file"
    raise click.BadParameter(message, param_hint="--input")


def _load(path: Path) -> Any:
    """An array, or the arrays of an .npz by name; strings may be pickled objects in neither."""
    try:
        loaded = np.load(path, allow_pickle=False)
        return dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Failed(f"{path}: not a file of arrays that numpy can read: {error}") from error


def _load_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(path.read_bytes())
    except SafetensorError as error:
        raise Failed(f"{path}: not a safetensors file: {error}") from error
