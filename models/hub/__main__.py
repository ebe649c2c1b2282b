"""`python -m models.hub`: writes models as hubs serve them to a folder for `candlec zoo`.

mobius-onnx builds the graphs, and downloads nothing. The weights are random, but the same every time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx_ir as ir
from rich.console import Console

from models.hub.package import PROMPT, PROVIDERS, STEP, exact, inputs, package
from models.hub.sizes import EVERY, SELECTION, architectures

console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[ARCHITECTURE]...")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/hub"), show_default=True)
@click.option("--all", "is_all", is_flag=True, help="Build all architectures, not only the selection.")
def main(names: tuple[str, ...], folder: Path, is_all: bool) -> None:
    """Build the named architectures, by default a selection, and write FOLDER/INDEX.json.

    Each architecture is built for the execution providers `default` and `cpu`, with float32, float16 and 4-bit
    weights; those of the selection only with weights that onnxruntime runs. With --all, some architectures cannot be
    built in tiny sizes: the command lists them, and continues.
    """
    known = architectures()
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"there is no architecture {unknown[0]}")
    chosen = dict.fromkeys(names or known, EVERY) if names or is_all else SELECTION
    folder.mkdir(parents=True, exist_ok=True)
    index: list[dict[str, Any]] = []
    failed = 0
    for kind, provider, weights in ((name, *each) for name in chosen for each in product(PROVIDERS, chosen[name])):
        try:
            index += _written(kind, provider, weights, folder)
        except Exception as error:  # mobius-onnx raises many types of exception
            failed += 1
            console.print(f"✗ {kind}, {provider}, {weights}: {type(error).__name__}: {str(error)[:200]}")
    (folder / "INDEX.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    console.print(f"{folder / 'INDEX.json'} lists {len(index)} models")
    sys.exit(1 if failed and not is_all else 0)


def _written(kind: str, provider: str, weights: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Write the models of an architecture, with two sets of inputs each. Yield their entries of the index."""
    for part, model in package(kind, provider, weights).items():
        name = f"{kind}_{provider}_{weights}" + ("" if part == "model" else f"_{part}")
        sets = [inputs(model, sizes, seed) for seed, sizes in enumerate((PROMPT, STEP))]
        ir.save(exact(model), folder / f"{name}.onnx")
        cases = [f"{name}.{number}.npz" for number in range(len(sets))]
        for case, arrays in zip(cases, sets, strict=True):
            np.savez(folder / case, **arrays)  # type: ignore[arg-type]
        source = f"mobius.build_from_module: {kind}, execution_provider={provider!r}, {weights}"
        yield {"name": name, "file": f"{name}.onnx", "source": source, "tags": ["mobius", weights], "cases": cases}


if __name__ == "__main__":
    main()
