"""The option `--calibration`: the inputs of typical runs, which give the ranges of activations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler import array_files
from compiler.cli.failure import Failed
from compiler.cli.output import console

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["calibration_option", "read_cases", "show_unquantized"]


def calibration_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--calibration`, which may be repeated."""
    option = click.option(
        "--calibration",
        multiple=True,
        metavar="DATA",
        help="With --precision int8 or auto, also quantize convolutions. DATA has the inputs of typical runs: an .npz "
        "or .safetensors file with all inputs of a run, a folder of input_0.pb and so on, or a folder of such files "
        "and folders. The compiler runs the model on them to find the ranges of activations. May be repeated.",
    )
    return option(function)


def read_cases(given: Sequence[str], model: Path) -> list[dict[str, Any]] | None:
    """The inputs of the runs that the arguments name; `None` without arguments."""
    found = [_read(path, model) for argument in given for path in _cases(Path(argument))]
    return found if given else None


def _cases(path: Path) -> Iterator[Path]:
    """The files and folders with the inputs of a run that a path stands for, in order."""
    if path.is_dir() and not (path / "input_0.pb").exists():
        inner = sorted(path.iterdir(), key=lambda each: (len(each.name), each.name))
        found = [each for each in inner if each.suffix in array_files.SUFFIXES or (each / "input_0.pb").exists()]
        if not found:
            wanted = "no .npz or .safetensors file, and no folder with a file input_0.pb"
            raise click.BadParameter(f"{path} has {wanted}", param_hint="--calibration")
        yield from found
    elif path.is_dir() or (path.suffix in array_files.SUFFIXES and path.exists()):
        yield path
    else:
        problem = "is no .npz or .safetensors file, and no folder" if path.exists() else "does not exist"
        raise click.BadParameter(f"{path} {problem}", param_hint="--calibration")


def _read(path: Path, model: Path) -> dict[str, Any]:
    from compiler.zoo.serialized import read_inputs

    if not path.is_dir():
        return dict(array_files.read(path))
    try:
        return read_inputs(path, model)
    except ValueError as error:
        raise Failed(str(error)) from error


def show_unquantized(steps: Mapping[str, int], precision: str, given: Sequence[str]) -> None:
    """Say that convolutions stay unquantized because there is no calibration data."""
    count = steps.get("Conv", 0)
    if precision in ("int8", "auto") and count and not given:
        stay = "1 convolution stays" if count == 1 else f"{count} convolutions stay"
        console.print(f"{stay} unquantized: --calibration can quantize more", style="dim", soft_wrap=True)
