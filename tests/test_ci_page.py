"""The page on CI: its commands run one after another in a new folder, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from compiler.runtime.processor import levels

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/ci.md").read_text()
CHECKOUT = "/path/to/candle-compiler"
RED = {
    "zoo run --zoo models --facts models/facts.toml --results after.jsonl",
    "zoo compare",
    "bisect models/digits.onnx --what",
    "diff old.onnx",
}
"""The beginnings of the commands that find something: their exit code is 1."""
END = "=== end of the command:"


class Command(NamedTuple):
    """A command of the page, and the lines that it prints."""

    text: str
    printed: list[str]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[Command]:
    for block in blocks("console"):
        first, *parts = block.split("$ ")
        assert not first, "a block begins with a command"
        for part in parts:
            text, *printed = part.splitlines()
            yield Command(text, printed)


COMMANDS = list(commands())


def pattern(lines: list[str]) -> str:
    """A pattern for these lines. `…` matches any text, and spaces match any number of spaces."""
    text = "\n".join(lines)
    return "".join(
        ".*?" if part == "…" else r"[ ]+" if part.isspace() and "\n" not in part else re.escape(part)
        for part in re.split(r"(…| +)", text)
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str]]:
    """The exit code and the output of each command."""
    folder = tmp_path_factory.mktemp("ci")
    programs = folder / "bin"
    programs.mkdir()
    scripts = {
        "candlec": f'exec "{sys.executable}" -m compiler "$@"',
        "pip": 'test -e "${2%\\[check\\]}"',
        "python": f'exec "{sys.executable}" "$@"',
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    work = folder / "work"
    work.mkdir()
    [program] = blocks("python")
    (work / "break.py").write_text(program)
    script = "\n".join(f'{{ {each.text}\n}} 2>&1\necho "{END} $?"' for each in COMMANDS).replace(CHECKOUT, str(ROOT))
    user = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, **user, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    environment.pop("GITHUB_ACTIONS", None)
    done = subprocess.run(["bash"], input=script, cwd=work, env=environment, capture_output=True, text=True, check=True)
    parts = re.split(rf"{END} (\d+)\n", done.stdout)
    return [(int(code), text) for text, code in zip(parts[::2], parts[1::2], strict=False)]


@pytest.mark.skipif("avx2" not in levels(), reason="the page uses the level avx2")
@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[each.text.partition(" /")[0] for each in COMMANDS])
def test_a_command_prints_what_the_page_shows(number: int, printed: list[tuple[int, str]]) -> None:
    command, (code, text) = COMMANDS[number], printed[number]
    is_red = any(command.text.removeprefix("candlec ").startswith(each) for each in RED)
    assert code == is_red, text
    if not command.printed:
        assert not text
    assert re.fullmatch(pattern([*command.printed, ""]) if command.printed else "", text, re.DOTALL), text


def test_every_red_command_is_on_the_page() -> None:
    for beginning in RED:
        assert any(each.text.startswith(f"candlec {beginning}") for each in COMMANDS)


def test_the_workflow_of_the_page_gives_inputs_that_the_action_has() -> None:
    [block] = blocks("yaml")
    [job] = yaml.safe_load(block)["jobs"].values()
    given = job["steps"][-1]["with"]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert given.items() <= {name: each["default"] for name, each in inputs.items()}.items()
    assert {"baseline", "measures", "slice", "comment"} <= inputs.keys()
