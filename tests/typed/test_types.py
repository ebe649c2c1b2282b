"""The uses of public names in public.py, by mypy and pyright; and the share of public names with known types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
FILE = "tests/typed/public.py"
BIN = Path(sys.executable).parent


def checked(tool: str, *arguments: str) -> str:
    """The output of a type checker for the package of this checkout."""
    if not (BIN / tool).exists():
        pytest.skip(f'{tool} is not installed: run pip install "pyright[nodejs]"' if tool == "pyright" else "no mypy")
    done = subprocess.run([BIN / tool, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stdout


def test_mypy_knows_the_signatures() -> None:
    assert "Success" in checked("mypy", "--config-file=pyproject.toml", FILE)


def test_pyright_knows_the_signatures() -> None:
    assert checked("pyright", "--pythonpath", sys.executable, FILE).splitlines()[-1].startswith("0 errors")


def test_every_wrong_use_is_marked_for_both() -> None:
    marked = [line for line in (ROOT / FILE).read_text().splitlines() if "ignore[" in line]
    assert len(marked) > 10
    assert all("# type: ignore[" in line and "# pyright: ignore[" in line for line in marked)


def test_the_types_of_all_public_names_are_known() -> None:
    found = json.loads(checked("pyright", "--pythonpath", sys.executable, "--outputjson", "--verifytypes", "compiler",
                               "--ignoreexternal"))  # fmt: skip
    unknown = [each["name"] for each in found["typeCompleteness"]["symbols"]
               if each["isExported"] and not each["isTypeKnown"]]  # fmt: skip
    assert not unknown, unknown
