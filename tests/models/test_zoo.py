"""Whole models against onnxruntime: our own, and the third-party ones of `../shared/zoo` where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.cli.zoo import check
from compiler.zoo import Entry, read_index

ROOT = Path(__file__).parent.parent.parent
FOLDERS = (ROOT / "models", ROOT.parent / "shared/zoo")


def entries() -> list[object]:
    """Every model of the folders, and a skipped test for a folder that is not there."""
    listed: list[object] = []
    for folder in FOLDERS:
        if (folder / "INDEX.json").exists():
            listed.extend(pytest.param(entry, id=entry.name) for entry in read_index(folder))
        else:
            reason = f"the third-party models are not in {folder}"
            listed.append(pytest.param(None, id=folder.name, marks=pytest.mark.skip(reason=reason)))
    return listed


@pytest.mark.parametrize("unpin", [False, True], ids=["pinned", "symbolic"])
@pytest.mark.parametrize("entry", entries())
def test_model_equals_onnxruntime(entry: Entry, unpin: bool) -> None:
    problems = [f"{outcome.way}: {outcome.problem}" for outcome in check(entry, unpin) if outcome.problem]
    assert not problems, "\n".join(problems)
