"""`make generate` where it cannot write every file: it says why, and writes nothing."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

from compiler.plan import generate

ROOT = Path(__file__).parent.parent


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Prevents writes to files, and returns the list of the paths that would be written."""
    paths: list[Path] = []
    monkeypatch.setattr(Path, "write_text", lambda path, _text, **_options: paths.append(path))
    monkeypatch.setattr(Path, "read_text", lambda _path, **_options: "")
    return paths


@pytest.mark.parametrize("whole", [True, False], ids=["tools/generate.py", "compiler.plan.generate"])
def test_without_ruff_nothing_is_written(whole: bool, written: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ruff" else find(name))
    monkeypatch.syspath_prepend(ROOT / "tools")
    main = runpy.run_path(str(ROOT / "tools/generate.py"))["main"] if whole else generate.main
    with pytest.raises(SystemExit, match="ruff, which formats the files, is not installed: `make generate` installs"):
        main()
    assert written == []


def test_the_message_of_ruff_is_printed(written: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_PACKAGE", "def (:")
    with pytest.raises(SystemExit, match=r"(?i)ruff cannot format the source that the schema gives: .*pars"):
        generate.main()
    assert written == []


def test_all_files_are_written(written: list[Path]) -> None:
    generate.main()
    package = ROOT / "compiler/plan/ops"
    assert [path.name for path in written if path.parent != package] == ["plan.schema.json"]
    assert {path for path in written if path.parent == package} == set(package.glob("*.py"))


def test_no_line_of_a_docstring_ends_within_a_url() -> None:
    """URLs contain hyphens, and may be longer than a line."""
    url = f"https://example.com/{'-'.join(['part'] * 30)}"
    for words in range(40):
        assert url in generate._doc({"description": " ".join([*["word"] * words, f"[source]({url}).", "The end."])})
