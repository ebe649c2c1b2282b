"""Checks plans on a GPU against the processor, and times them: all that needs one, in one command.

`make cuda-bundle` gathers what this needs, in build/cuda-check; here NumPy, ml_dtypes and click are enough, and PyTorch
for the times beside it. Results go to benchmarks/results/cuda.md. The exit code is 1 where a line is marked ✗: what it
tells of is not as it should be, or was planned and did not run. Where the device cannot be used it is 2, and the page
stays.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import click
from cuda_files import FOLDER
from cuda_process import refusal
from cuda_results import one_line
from cuda_sections import Line, Setting, beside_torch, device, operators, sanitizer, zoo

from compiler.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "benchmarks/results/cuda.md"


@dataclass(frozen=True)
class Section:
    """A part of the page, and the seconds that it has, beside those that the parts before it left."""

    title: str
    lines: Callable[[Setting], Iterator[Line]]
    seconds: int


SECTIONS = (
    Section("The zoo", zoo, 130),
    Section("The device", device, 50),
    Section("Operators", operators, 80),
    Section("Beside PyTorch", beside_torch, 100),
    Section("compute-sanitizer", sanitizer, 60),
)
SECONDS = sum(section.seconds for section in SECTIONS)


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, show_default=True, help="Where results go.")
@click.option("--bundle", type=click.Path(path_type=Path), default=FOLDER, show_default=True, help="What to check.")
@click.option("--seconds", default=SECONDS, show_default=True, help="What all may take; each section has its share.")
def main(device: str, page: Path, bundle: Path, seconds: int) -> None:
    """Check and time the plans of a bundle on a device."""
    if not (bundle / "commit").exists():
        refuse(f"{bundle} is not there: `make cuda-bundle` writes it")
    if sentence := refusal(bundle, device):
        refuse(sentence)
    lines = {section: [Line("✗ not run: the check ended before", is_wrong=True)] for section in SECTIONS}
    heading, deadline = machine(device, bundle), time.monotonic()
    for section in SECTIONS:
        deadline += section.seconds * seconds / SECONDS
        lines[section] = list(shown(section, Setting(bundle, device, deadline)))
        write_whole(page, text(heading, lines).encode())
    wrong = sum(line.is_wrong for part in lines.values() for line in part)
    sys.exit(f"{wrong} {'line is' if wrong == 1 else 'lines are'} marked ✗" if wrong else 0)


def refuse(sentence: str) -> None:
    """Ends the check before it began."""
    click.echo(sentence, err=True)
    sys.exit(2)


def shown(section: Section, setting: Setting) -> Iterator[Line]:
    """The lines of a section, which are printed as they come."""
    click.echo(f"\n## {section.title}\n")
    for line in guarded(section.lines(setting)):
        click.echo(line.text)
        yield line


def guarded(lines: Iterator[Line]) -> Iterator[Line]:
    """Lines, what they raise, and what they took."""
    start = time.monotonic()
    try:
        yield from lines
    except Exception as error:  # the other sections still say something
        yield Line(f"✗ {one_line(error)}", is_wrong=True)
    yield from (Line(""), Line(f"This took {time.monotonic() - start:.0f} s."))


def text(heading: str, lines: dict[Section, list[Line]]) -> str:
    """The page."""
    parts = [f"## {section.title}\n\n" + "\n".join(line.text for line in part) for section, part in lines.items()]
    return "\n\n".join(["# On a GPU", heading, *(part.rstrip() for part in parts)]) + "\n"


def machine(device: str, bundle: Path) -> str:
    """What ran, and where."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    there = device != "emulator" and shutil.which(query[0]) is not None
    gpu = subprocess.run(query, capture_output=True, text=True, timeout=60).stdout.strip() if there else ""
    commit = (bundle / "commit").read_text().strip()
    return f"`make cuda-check` at {commit} on {gpu or device}, {time.strftime('%Y-%m-%d')}."


if __name__ == "__main__":
    main()
