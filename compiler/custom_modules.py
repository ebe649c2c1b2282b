"""Modules that register functions of custom operators: in this process, and in the processes that it starts."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compiler.errors import Error

__all__ = ["CustomModule", "import_again", "import_custom", "imported_modules"]


@dataclass(frozen=True)
class CustomModule:
    """A module, or a file with its absolute path.

    `folder` is the first folder of its search path. `digest` is the SHA-256 of its code, without the modules that it
    imports; empty for a module without a file.
    """

    name: str
    folder: str
    digest: str


_IMPORTED: dict[str, CustomModule] = {}


def imported_modules() -> tuple[CustomModule, ...]:
    """The modules that `import_custom` has imported, each as it was the last time."""
    return tuple(_IMPORTED.values())


def import_custom(name: str) -> None:
    """Import a Python file (.py), or a module that is in the current folder or installed.

    Every process that later runs a task of this process imports it too.

    Raises:
        FileNotFoundError: there is no such file.
        Exception: the code raises it.
    """
    is_file = name.endswith(".py")
    path = Path(name).absolute()
    folder = str(path.parent.resolve() if is_file else Path.cwd())
    full = str(path) if is_file else name
    digest = _imported(full, folder)
    _IMPORTED.pop(full, None)
    _IMPORTED[full] = CustomModule(full, folder, digest)


def import_again(modules: Iterable[CustomModule]) -> None:
    """Import modules that another process has imported, in the same order.

    Raises:
        Error: a module cannot be imported, or its code is not the same as in the other process.
    """
    for module in modules:
        place = f"{module.name} in process {os.getpid()} on {os.uname().nodename}"
        try:
            digest = _imported(module.name, module.folder)
        except Exception as error:
            raise Error(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
        if digest != module.digest:
            raise Error(f"{place} is not the same code as in the process of the command")


def _imported(name: str, folder: str) -> str:
    """Import a module or a file, and return the digest of its code."""
    sys.path.insert(0, folder)
    if not name.endswith(".py"):
        path = importlib.import_module(name).__file__
        return "" if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()
    code = Path(name).read_bytes()
    own = f"_custom_{Path(name).stem}"  # the file may have the name of another module
    spec = importlib.util.spec_from_file_location(own, name)
    assert spec is not None and spec.loader is not None  # as for every .py file
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    # Bytecode that Python keeps stays valid for a second of changes: the code runs as it stands in the file.
    exec(compile(code, name, "exec"), module.__dict__)
    return hashlib.sha256(code).hexdigest()
