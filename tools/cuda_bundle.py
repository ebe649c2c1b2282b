"""Writes the bundle build/cuda-check, which `make cuda-check` needs on a machine with a GPU but without compilers.

The bundle holds the extensions, and plans with inputs and the CPU's results: trained models, the onnx package's tests
of operators, networks with random weights, and small graphs.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

import click  # noqa: E402
from gpu import gather  # noqa: E402
from gpu.bundle import EXTENSIONS, commit  # noqa: E402
from gpu.files import FOLDER, Model, pack, write, write_about  # noqa: E402

LARGEST = 56 << 20
"""The limit of a bundle, in bytes. With the repository's files, the total is below 64 MiB."""


@click.command()
@click.option("--zoo", type=click.Path(path_type=Path), default=ROOT / "models", help="A folder of trained models.")
@click.option(
    "--exports", type=click.Path(path_type=Path), default=ROOT / "build/cuda-networks", help="Exported networks."
)
def main(zoo: Path, exports: Path) -> None:
    """Write build/cuda-check. The former bundle stays until the new one is complete."""
    part = FOLDER.with_name(f"{FOLDER.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    about = gathered(part, zoo, exports)
    size = sum(file.stat().st_size for file in part.rglob("*"))
    print(f"{FOLDER.relative_to(ROOT)}: {size / 2**20:.1f} MiB, made by `{about['command']}` at {about['commit']}")
    if size > LARGEST:
        sizes = {each.name: sum(file.stat().st_size for file in [each, *each.rglob("*")]) for each in part.iterdir()}
        for name, bytes_of in sorted(sizes.items(), key=lambda item: -item[1]):
            print(f"  {name}: {bytes_of / 2**20:.1f} MiB")
        sys.exit(f"the bundle exceeds {LARGEST >> 20} MiB; the former bundle stays")
    shutil.rmtree(FOLDER, ignore_errors=True)
    part.rename(FOLDER)


def gathered(folder: Path, zoo: Path, exports: Path) -> dict[str, Any]:
    """Writes every file of the bundle, and returns the facts about it."""
    for extension in [ROOT / f"compiler/{name}.abi3.so" for name in EXTENSIONS]:
        if not extension.exists():
            sys.exit(f"{extension} is missing: `make cuda` builds it")
        pack(extension, folder)
    facts = {"commit": commit(), "command": f"make cuda-bundle ZOO={zoo}", "made": time.time()}
    tests: list[str] = []
    models: dict[str, Iterable[Model]] = {
        "small": map(gather.with_results, gather.small()),
        "paths": map(gather.with_results, gather.paths()),
        "sanitized": gather.sanitized(),
        "convolutions": gather.of_convolutions(),
        "trained": gather.of_trained(sorted({ROOT / "models", zoo.resolve()})),
        "operators": listed(gather.of_operators(), tests),
        "networks": gather.of_networks(exports),
    }
    sections = {}
    for name, found in models.items():
        start = time.monotonic()
        sections[name] = write(folder, name, found)
        print(f"{name}: {len(sections[name])} files in {time.monotonic() - start:.0f} s", flush=True)
    about = {**facts, "sections": sections, "tests": tests, "kernels": gather.kernels()}
    write_about(folder, about)
    return about


def listed(models: Iterable[Model], names: list[str]) -> Iterable[Model]:
    """The models of tests; adds the names of the tests to `names`."""
    for model in models:
        names += [test["name"] for test in model["tests"]]
        yield model


if __name__ == "__main__":
    main()
