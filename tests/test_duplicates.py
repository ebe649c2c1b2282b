"""No passage of six lines occurs twice in the code, except those in the ledger, which states the reason.

Blank lines, comments, attributes, imports and lines of punctuation do not count, and neither does white space.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.sources import files

ROOT = Path(__file__).parent.parent
FOLDERS = ("benchmarks", "compiler", "models", "runtime", "tools", "tests")
SUFFIXES = {".c", ".cpp", ".css", ".cu", ".cuh", ".h", ".js", ".py", ".rs"}
LEAST = 6
GENERATED = {"compiler/plan/ops": "the classes follow the Rust types, which repeat attributes"}
"""Folders of generated files, with the reason why their passages repeat."""
LEDGER: dict[str, tuple[int, str]] = {}
"""The files that share passages, or the file that repeats some: the number of pairs of passages, and the reason."""

IMPORTS = re.compile(
    r"^ *(?:from [\w.]+ )?import (?:\([^)]*\)|[^\n]*)|^ *(?:pub(?:\(\w+\))? )?use [\w:{}*,\s]+;", re.MULTILINE
)
IGNORED = re.compile(r"\W*|(?://|#|\"\"\").*")


class Line(NamedTuple):
    """A line that counts: its number in the file, and its text without white space."""

    number: int
    text: str


class Passage(NamedTuple):
    """Lines of a file, from the first to the last."""

    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.first}-{self.last}"


def lines_of(source: str) -> list[Line]:
    """The lines that count."""
    source = IMPORTS.sub(lambda found: "\n" * found[0].count("\n"), source)
    folded = ((number, "".join(line.split())) for number, line in enumerate(source.splitlines(), 1))
    return [Line(number, text) for number, text in folded if not IGNORED.fullmatch(text)]


def repeated(files: dict[str, list[Line]]) -> Iterator[tuple[Passage, Passage]]:
    """The pairs of passages with the same lines, each as long as possible."""
    places = defaultdict(list)
    for file, lines in files.items():
        for at in range(len(lines) - LEAST + 1):
            places[tuple(line.text for line in lines[at : at + LEAST])].append((file, at))
    pairs = {
        (one, other)
        for found in places.values()
        for index, one in enumerate(found)
        for other in found[index + 1 :]
        if one[0] != other[0] or other[1] - one[1] >= LEAST
    }
    for (one, at), (other, place) in sorted(pairs):
        if ((one, at - 1), (other, place - 1)) not in pairs:
            length = LEAST
            while ((one, at + length - LEAST + 1), (other, place + length - LEAST + 1)) in pairs:
                length += 1
            yield passage(one, files[one][at : at + length]), passage(other, files[other][place : place + length])


def passage(file: str, lines: list[Line]) -> Passage:
    return Passage(file, lines[0].number, lines[-1].number)


def key(one: Passage, other: Passage) -> str:
    """The key of a pair in the ledger: its files, in the order of the alphabet."""
    return " ".join(sorted({one.file, other.file}))


def sources() -> dict[str, list[Line]]:
    """The lines of every file that a person wrote."""
    paths = (path for folder in FOLDERS for path in sorted(files(ROOT / folder)) if path.suffix in SUFFIXES)
    return {str(path.relative_to(ROOT)): lines_of(path.read_text()) for path in paths}


def test_no_passage_stands_twice() -> None:
    files = sources()
    made = {name for name in files if str(Path(name).parent) in GENERATED}
    assert made
    found = list(repeated({name: lines for name, lines in files.items() if name not in made}))
    counts = Counter(key(one, other) for one, other in found)
    known = {files: count for files, (count, _) in LEDGER.items()}
    new = [
        f"{one} stands again in {other}"
        for one, other in found
        if counts[key(one, other)] > known.get(key(one, other), 0)
    ]
    assert not new, "let one function serve both places, or state in LEDGER why not:\n" + "\n".join(new)
    stale = {files: counts[files] for files, count in known.items() if counts[files] < count}
    assert not stale, f"these files share fewer passages now: mend their lines in LEDGER: {stale}"


def test_a_repeated_passage_is_found() -> None:
    passage = [f"x{number} = {number}" for number in range(LEAST + 1)]
    apart = "\n".join(["import a", *passage, "a = 1"])
    again = "\n".join(["b = 2", *(f"    {line}\n" for line in passage)])
    files = {"one.py": lines_of(apart), "two.py": lines_of(again), "three.py": lines_of("\n".join(passage[1:-1]))}
    assert [(str(one), str(other)) for one, other in repeated(files)] == [("one.py:2-8", "two.py:2-14")]
    twice = {"both.py": lines_of("\n".join([*passage[1:], "c = 3", *passage[1:]]))}
    assert [(str(one), str(other)) for one, other in repeated(twice)] == [("both.py:1-6", "both.py:8-13")]
    assert not list(repeated({"same.py": lines_of("a()\n" * 11)}))
