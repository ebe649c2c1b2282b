"""Arguments that several verbs share: files to write, sizes of symbols, the device."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.numbers import Finite, Size, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from compiler import Plan

__all__ = [
    "FOLDER",
    "INPUT",
    "MAX_THREADS",
    "OUTPUT",
    "Finite",
    "Size",
    "Whole",
    "check_new_folder",
    "check_outputs",
    "device_option",
    "is_of",
    "is_plan",
    "memory_option",
    "named_device_option",
    "packing_option",
    "pin_option",
    "sizes_of",
    "strict_option",
    "threads_option",
    "tolerance_option",
]

if TYPE_CHECKING:

    class Name(click.ParamType[str]):
        """The base of parameter types for names."""

else:  # before click 8.4 the class takes no parameter
    Name = click.ParamType

MAX_THREADS = 1024
"""The runtime's limit. It is repeated here because the options must not import the runtime."""


class OutputFile(click.Path):
    """A file to write. The command checks it before it does any work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if not os.fspath(value):
            self.fail("the name of the file is empty", param, ctx)
        path = super().convert(value, param, ctx)
        folder = Path(value).parent
        if not folder.is_dir():
            self.fail(f"the folder {str(folder)!r} does not exist", param, ctx)
        return path


INPUT = click.Path(readable=False, path_type=Path)
"""A file or folder to read. The command reports one without permission as it reports a missing one."""
FOLDER = click.Path(file_okay=False, readable=False, path_type=Path)
"""A folder to write, see `check_new_folder`."""
OUTPUT = OutputFile(dir_okay=False, writable=True, readable=False, path_type=Path)


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Refuse to overwrite another file that the command reads or writes. The keys of `outputs` are options."""
    taken = {"an input": list(inputs)}
    for option, path in outputs.items():
        if path is None:
            continue
        for what, others in taken.items():
            if any(_is_same(path, other) for other in others):
                raise click.BadParameter(f"{path} is {what} of this command: choose another file", param_hint=option)
        taken[f"the {option}"] = [path]


def check_new_folder(folder: Path, option: str) -> None:
    """Refuse a folder that has files in it."""
    if folder.is_dir() and any(folder.iterdir()):
        raise click.BadParameter(f"{folder} is not empty: name a new folder", param_hint=option)


def _is_same(path: Path, other: Path) -> bool:
    """Whether both paths name the same regular file, or would if it existed."""
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def is_plan(path: Path) -> bool:
    """Whether to read a file as a plan, because of its first bytes or its suffix. Any other file is a model."""
    from compiler.plan.header import begins_as_plan
    from compiler.plan.plan import MODEL

    if path.is_dir():
        return False
    with path.open("rb") as file:
        head = file.read(9)
    return begins_as_plan(head) or (path.suffix == ".plan" and not head.startswith(MODEL))


def is_of(plan: Plan, model: Path) -> bool:
    """Whether a plan was compiled from the present content of the model file."""
    import hashlib

    return bool(plan.document["source_sha256"] == hashlib.sha256(model.read_bytes()).hexdigest())


def pin_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--dim`, as the parameter `dims`. It fixes sizes at compile time, and may be repeated."""
    help_text = "Fix the size of a symbolic dimension when compiling, for example batch=1. May be repeated."
    return click.option("--dim", "dims", multiple=True, metavar="NAME=N", callback=sizes_of, help=help_text)(function)


class Device(Name):
    """A device that runs plans: `cpu`, `cuda`, `cuda:1`, or `auto`."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        from compiler.runtime.devices import NAMES

        return self._known(value, NAMES, param, ctx)

    def _known(self, value: Any, names: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from compiler.runtime.devices import is_known

        if not is_known(value):
            self.fail(f"{value!r} is unknown; devices are {names}", param, ctx)
        return str(value)


class Named(Device):
    """The name of a device, but not `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        from compiler.runtime.devices import GIVEN_NAMES

        if value == "auto":
            self.fail("this command needs the name of a device, not 'auto': write cpu or cuda", param, ctx)
        return self._known(value, GIVEN_NAMES, param, ctx)


def device_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--device`."""
    help_text = "Device to run on: cpu, cuda (cuda:1 is the second GPU), or auto: cuda if it works, otherwise cpu."
    metavar = "cpu|cuda|auto"
    option = click.option("--device", type=Device(), default="cpu", show_default=True, metavar=metavar, help=help_text)
    return option(function)


def strict_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--strict`."""
    help_text = (
        "Refuse a model that breaks a rule of ONNX, even if onnxruntime runs it and its meaning is clear (CC0408)."
    )
    return click.option("--strict", is_flag=True, help=help_text)(function)


def named_device_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--device` without `auto`."""
    return click.option("--device", type=Named(), default="cpu", show_default=True, metavar="cpu|cuda", help=help_text)


def strict_device_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--strict-device`."""
    return click.option("--strict-device", is_flag=True, help=help_text)


def threads_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--threads`."""
    help_text = "Number of threads.  [default: one per usable processor]"
    return click.option("--threads", type=Whole(1, MAX_THREADS), metavar="N", help=help_text)(function)


def tolerance_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--tolerance`."""
    help_text = "Largest allowed difference ÷ the output's largest element.  [default: by dtype, 1e-5 for float32]"
    return click.option("--tolerance", type=Finite(0), metavar="X", help=help_text)(function)


def memory_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--max-memory`."""
    return click.option("--max-memory", type=Size(), metavar="SIZE", help=help_text)


def packing_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--memory`, as the parameter `packing`."""
    help_text = "low: keep the weights in less memory, which makes some convolutions slower."
    choice = click.Choice(["full", "low"])
    return click.option("--memory", "packing", type=choice, default="full", show_default=True, help=help_text)(function)


def sizes_of(_context: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """`("batch=1",)` → `{"batch": 1}`."""
    sizes: dict[str, int] = {}
    for value in values:
        given = re.fullmatch(r"(?s)(.+)=0*([0-9]{1,18})", value)
        if given is None:
            raise click.BadParameter(f"{value!r} is not NAME=N, where N is a whole number from 0 to 10^18 - 1")
        if given[1] in sizes:
            raise click.BadParameter(f"{given[1]!r} appears twice: give one size")
        sizes[given[1]] = int(given[2])
    return sizes
