"""Linters, and stand-ins for other programs, for the tests of workflows and actions for GitHub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VALID = "ok -- validation done\n"


def lint(tool: str, *arguments: str, text: str | None = None) -> str:
    """The output of a lint tool."""
    path = shutil.which(tool, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if path is None:
        pytest.skip(f"there is no program {tool}")
    done = subprocess.run([path, *arguments], input=text, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stdout + done.stderr


def schema_errors(kind: str, path: Path) -> str:
    """The output of a check against the schema of GitHub's `workflows` or `actions`."""
    return lint("check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", str(path)).removeprefix(VALID)


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
