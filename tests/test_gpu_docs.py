"""The table of docs/cuda.md contains the message of every error for a missing or failing GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "runtime"
CUDA = RUNTIME / "device/cuda/src"
SOURCES = [CUDA / "checks.rs", CUDA / "errors.rs", CUDA / "context.rs", ROOT / "compiler/runtime/devices.py"]
OTHERS = [CUDA / "lib.rs", CUDA / "modules.rs", RUNTIME / "device/src/error.rs", RUNTIME / "plan/src/device.rs"]
"""Files that contain other messages too."""
ADVICE = (
    "install NVIDIA's driver 580 or newer",
    "build it with `make cuda`",
    "`make emulator` builds it",
    "cpu, cuda (",
    "cpu, cuda and",
    ": this process cannot use the GPU any more",
)
"""The ends of messages after the sentence: advice and lists."""
LONG = 18
"""The fewest characters of a sentence. A shorter text is a part of a sentence, or a name."""


def rows() -> list[str]:
    """The sentences of the table."""
    page = (ROOT / "docs/cuda.md").read_text()
    section = page.partition("## Errors of a missing or failing GPU")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(.*?)` \| ", section, re.MULTILINE)


def text(path: Path) -> str:
    """A source without comments, with the parts of split string literals joined."""
    source = path.read_text()
    if path.suffix == ".py":
        return re.sub(r'""".*?"""', "", source, flags=re.DOTALL).replace("\\'", "'")
    return re.sub(r"\\\n\s*", "", re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE))


def said(source: str) -> list[str]:
    """The messages in a source, without their advice, with `…` for the variable parts."""
    literals = [re.sub(r"\{.*?\}", "…", each) for each in re.findall(r'"((?:[^"\\\n]|\\.)*)"', source)]
    found = [re.sub(r'^device \\?"…\\?": ', "", each) for each in literals]
    return [each for each in found if len(each) > LONG and " " in each and not each.startswith(ADVICE)]


@pytest.mark.parametrize("row", rows())
def test_each_sentence_of_the_table_is_in_the_code(row: str) -> None:
    sources = "\n".join(re.sub(r"\{.*?\}", "…", text(path)) for path in SOURCES + OTHERS)
    assert all(part in sources for part in re.split(r"…(?:, …)?", row) if len(part) > 4), row


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_each_sentence_of_the_code_is_in_the_table(path: Path) -> None:
    known = [re.split(r"[…:(]", row.strip("… "))[0].strip() for row in rows()]
    missing = [each for each in said(text(path)) if not any(row in each for row in known)]
    assert missing == []
