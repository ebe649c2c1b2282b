"""The uses of public names in public.py, by mypy and pyright; and the share of public names with known types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
FILE = "tests/typed/public.py"
BIN = Path(sys.executable).parent
PUBLIC = ("compiler", *(f"compiler.{name}" for name in ("batch", "dynamo", "ort", "ray", "zoo")))
"""The modules whose names programs import. The other modules are the compiler's own.

`compiler.backend` is not among them: its classes are subclasses of the onnx package's, whose types `--verifytypes` does
not read. public.py uses its names.
"""


def checked(tool: str, *arguments: str) -> str:
    """The output of a type checker for the package of this checkout."""
    if not (BIN / tool).exists():
        pytest.skip(f'{tool} is not installed: run pip install "pyright[nodejs]"' if tool == "pyright" else "no mypy")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [BIN / tool, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
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
    """The type of a class is known if those of its members are."""
    found = json.loads(checked("pyright", "--pythonpath", sys.executable, "--outputjson", "--verifytypes", "compiler",
                               "--ignoreexternal"))  # fmt: skip
    symbols = {each["name"]: each for each in found["typeCompleteness"]["symbols"] if each["isExported"]}
    public = [name for name in symbols if name.rpartition(".")[0] in PUBLIC]
    assert {"compiler.Session", "compiler.load", "compiler.ort.InferenceSession", "compiler.ray.Predictor"} <= {*public}
    unknown = [name for name in public if not symbols[name]["isTypeKnown"]]
    reasons = [f"{name}: {said['message']}" for name, each in symbols.items() for said in each["diagnostics"]]
    assert not unknown, "\n".join([*unknown, "", *reasons])
