"""The inputs of a run: files of arrays, or random arrays."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from compiler import array_files
from compiler.cli.arguments import Whole, sizes_of
from compiler.cli.failure import Failed
from compiler.cli.option_groups import grouped
from compiler.cli.output import errors, shape_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from compiler import TensorInfo

__all__ = ["Given", "given_options", "input_option", "seed_option", "size_option"]

_UNRELATED_TO_SIZES = ("device", "setting")
"""The kinds of errors that other sizes cannot fix: errors of GPUs and of environment variables."""


def input_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--input`, as the parameter `inputs`, which may be repeated."""
    help_text = (
        "One input as NAME=FILE.npy, or all inputs in an .npz or .safetensors file, or in a folder of the files "
        "input_0.pb, input_1.pb and so on. The items of a sequence are the arrays NAME.0, NAME.1 and so on. May be "
        "repeated."
    )
    return click.option("--input", "inputs", multiple=True, metavar="INPUT", help=help_text)(function)


def size_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--size`, as the parameter `sizes`. It sets sizes of random inputs, and may be repeated."""
    help_text = "Set the size of a symbolic dimension of random inputs, for example batch=1. May be repeated."
    return click.option("--size", "sizes", multiple=True, metavar="NAME=N", callback=sizes_of, help=help_text)(function)


def seed_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--seed`."""
    help_text = "Set the seed of the random inputs."
    option = click.option("--seed", type=Whole(0), default=0, show_default=True, metavar="N", help=help_text)
    return option(function)


@dataclass(frozen=True)
class Given:
    """The choice of inputs: the arguments of `--input`, or the sizes and the seed of random inputs."""

    inputs: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0

    @property
    def is_random(self) -> bool:
        """Whether the inputs are random, because the user names no file."""
        return not self.inputs

    @property
    def files(self) -> list[Path]:
        """The files that the arguments name, and those in the folders that they name."""
        from compiler.zoo.data_set import numbered

        paths = [path for _, path in map(_name_and_file, self.inputs)]
        return [file for path in paths for file in (numbered(path, "input") if path.is_dir() else [path])]

    def refuse(self, options: str) -> None:
        """Refuse inputs, which only other options need."""
        if self.inputs or self.sizes or self.seed:
            given = "--input" if self.inputs else "--size" if self.sizes else "--seed"
            fixes = "; --dim fixes a dimension" if given == "--size" else ""
            raise click.UsageError(f"{given} is for {options}: leave it out, or add one of them{fixes}")

    def check_usage(self) -> None:
        """Refuse sizes for the arrays of files."""
        if self.inputs and self.sizes:
            raise click.UsageError(
                "--size sets sizes of random inputs: leave it out, because the arrays of --input have their own sizes"
            )

    def arrays(self, declared: Sequence[TensorInfo]) -> dict[str, Any]:
        """The arrays of the files; without files, random arrays, and a message that describes them."""
        from compiler.accuracy.random_inputs import random_inputs

        self.check_usage()
        if self.inputs:
            return array_files.gather(_read(self.inputs, declared), declared)
        try:
            made = random_inputs(declared, self.sizes, self.seed)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        except MemoryError as error:
            raise Failed(f"{error}: give smaller sizes with --size") from None
        self.show_shapes({name: np.shape(value) for name, value in made.items()})
        return made

    def show_shapes(self, shapes: Mapping[str, Sequence[int]], name: str = "") -> None:
        """Print the shapes of random inputs. `name` is the model's, if there are several."""
        if texts := ", ".join(f"{each} {shape_text(shape)}" for each, shape in shapes.items()):
            of = f" of {name}" if name else ""
            said = f"Without --input, the inputs{of} are random (seed {self.seed}): {texts}"
            errors.print(said, style="dim", soft_wrap=True)

    @contextmanager
    def suggest_sizes(self, declared: Sequence[TensorInfo]) -> Iterator[None]:
        """Suggest other sizes or real inputs if a run fails on random inputs."""
        from compiler import RunError

        symbols = {dim for each in declared for dim in each.shape or () if isinstance(dim, str)}
        free = symbols - self.sizes.keys()
        try:
            yield
        except RunError as error:
            if self.inputs or not declared or error.kind in _UNRELATED_TO_SIZES:
                raise
            advice = "the command chose random inputs: give real inputs with --input"
            if free:
                other = f"--size {min(free)}=N sets another size, or give real inputs with --input"
                advice = f"the command chose random inputs and their sizes: {other}"
            raise Failed(f"{error}\n  help: {advice}") from error


given_options = grouped("given", Given, input_option, size_option, seed_option)
"""The options `--input`, `--size` and `--seed`, as the parameter `given`."""


def _name_and_file(argument: str, example: str = "") -> tuple[str, Path]:
    """`x=x.npy` → `("x", Path("x.npy"))`; the name is empty for files of several arrays.

    With an `example`, an `.npy` file needs a name, and the error suggests this one.
    """
    name, _, file = argument.rpartition("=")
    if not file:
        raise click.BadParameter(f"{argument!r} names no file: write NAME=FILE.npy", param_hint="--input")
    if Path(argument).is_dir():
        return "", Path(argument)
    path = Path(file if name and not Path(argument).exists() else argument)
    named = path != Path(argument)
    if not named and path.suffix == ".npy":
        if not example:
            return "", path
        advice = f"an .npy file holds one input, so name this input: --input {example}={path}"
        raise click.BadParameter(advice, param_hint="--input")
    if path.suffix not in ((".npy",) if named else array_files.SUFFIXES):
        wanted = "an .npy file" if named else "NAME=FILE.npy, an .npz or .safetensors file, or a folder of input_0.pb"
        raise click.BadParameter(f"{path} is not {wanted}", param_hint="--input")
    return name if named else "", path


def _read(given: Sequence[str], declared: Sequence[TensorInfo]) -> dict[str, Any]:
    """The arrays that `--input` arguments name."""
    found: dict[str, Any] = {}
    example = declared[0].name if declared else "NAME"
    for name, path in (_name_and_file(each, example) for each in given):
        read = _read_folder(path, declared) if path.is_dir() else array_files.read(path)
        more = {name: read} if name else read
        if twice := found.keys() & more.keys():
            raise click.BadParameter(f"{min(twice)!r} appears twice: give it once", param_hint="--input")
        found |= more
    return found


def _read_folder(folder: Path, declared: Sequence[TensorInfo]) -> dict[str, Any]:
    """The arrays of a folder in the format of the ONNX model zoo."""
    from compiler.zoo.serialized import read_declared

    try:
        return read_declared(folder, declared)
    except ValueError as error:
        raise Failed(str(error)) from error
