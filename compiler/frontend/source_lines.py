"""Names of Python files in stack traces, without the folders of the machine."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["is_own", "relative_name", "relative_trace", "scripted_trace"]

_INSTALLED = re.compile(r".*/(?=(?:site|dist)-packages/|python3\.\d+/)")
_NOT_OWN = re.compile(r"<|.*/(?:site|dist)-packages/torch/|.*/python3\.\d+/(?!(?:site|dist)-packages/)")
"""Names of files of PyTorch and Python."""
_EXPORTER = Path(__file__).parent.parent


def is_own(file: str) -> bool:
    """Whether a file is neither of PyTorch, nor of Python, nor of the exporter."""
    return not _NOT_OWN.match(file) and _EXPORTER not in Path(file).parents


def relative_trace(trace: str, root: Path) -> str:
    """`trace` with its file names relative to `root`, or to the folder of installed packages."""
    return re.sub(r'File "([^"]+)"', lambda found: f'File "{relative_name(found[1], root)}"', trace)


def scripted_trace(trace: str, root: Path) -> str:
    """The same for a trace of the TorchScript exporter, without the frames of PyTorch and of the exporter."""
    found = re.findall(r"^(.+\.py)(\(\d+\): \S+)$", trace, re.MULTILINE)
    return "\n".join(relative_name(file, root) + rest for file, rest in found if is_own(file))


def relative_name(name: str, root: Path) -> str:
    """`site-packages/…` for an installed file; else `name` relative to `root`, or only its last part."""
    path = Path(name)
    if _INSTALLED.match(name):
        return _INSTALLED.sub("", name)
    if not path.is_absolute():
        return name
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
