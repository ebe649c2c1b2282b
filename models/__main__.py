"""`python -m models`: exports a group of models to a folder for `candlec bench --zoo` and `candlec zoo`.

An export stays until the model's file, a file that it imports, or the version of a package changes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from models.groups import GROUPS, all_names, file_of, group_of, module_of

PACKAGES = ("torch", "torchvision", "transformers", "onnxscript")

console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(all_names()), metavar="[NAME]...")
@click.option(
    "--group", type=click.Choice([*GROUPS]), default="known", show_default=True, help="What to export without a NAME."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help=f"[default: {', '.join(f'{group.exports} for {name}' for name, group in GROUPS.items())}]",
)
def main(names: tuple[str, ...], group: str, folder: Path | None) -> None:
    """Export the named models, by default those of a group, to FOLDER, with inputs and an INDEX.json."""
    chosen = {name: folder or group_of(name).exports for name in names or GROUPS[group].names}
    missing: dict[str, str] = {}
    for number, (name, place) in enumerate(chosen.items(), 1):
        place.mkdir(parents=True, exist_ok=True)
        if not is_exported(name, place):
            try:
                export(name, place, f"{number}/{len(chosen)}")
            except ModuleNotFoundError as error:
                missing[name] = (error.name or str(error)).partition(".")[0]
    for place in {*chosen.values()}:
        entries = [entry(name, place) for name in all_names() if is_exported(name, place)]
        (place / "INDEX.json").write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
    for name, package in missing.items():
        console.print(f'✗ {name} needs {package}, which is not installed: run pip install "candle-compiler[models]"')
    sys.exit(1 if missing else 0)


def files(name: str, folder: Path) -> tuple[Path, Path]:
    """The files of the model and its inputs, for the present state of the source."""
    stem = f"{name}-{key(name)}"
    return folder / f"{stem}.onnx", folder / f"{stem}.npz"


def is_exported(name: str, folder: Path) -> bool:
    """Whether the present state of a model is exported."""
    return all(file.exists() for file in files(name, folder))


def entry(name: str, folder: Path) -> dict[str, Any]:
    """The model's entry of the index."""
    model, inputs = files(name, folder)
    what, stated = described(file_of(module_of(name)))
    source = f"{module_of(name).replace('.', '/')}.py"
    found = {"name": name, "file": model.name, "source": source, "what": what, "cases": [inputs.name]}
    return {**found, "tolerance": stated["TOLERANCE"], "reason": stated["REASON"]} if "REASON" in stated else found


def export(name: str, folder: Path, progress: str) -> None:
    """Write the model and its inputs, and remove former states. The model gets its name when it is complete."""
    import torch

    import compiler

    module = importlib.import_module(module_of(name))
    path, inputs = files(name, folder)
    remove_older(name, folder)
    started = time.perf_counter()
    with console.status(f"{progress} exporting {name}"), torch.no_grad():
        given = module.inputs()
        part = path.with_suffix(".part")
        optimize = group_of(name).optimize
        arguments = tuple(given.values())
        compiler.export(module.build(), arguments, part, outputs=module.OUTPUTS, optimize=optimize, check=False)
        np.savez(inputs, **{key: tensor.numpy() for key, tensor in given.items()})
        part.rename(path)
    size, seconds = path.stat().st_size / 1e6, time.perf_counter() - started
    console.print(f"{progress} {path.name}: {size:.1f} MB in {seconds:.0f} s")


def key(name: str) -> str:
    """A digest of everything that an export depends on: the model's file, its imports, and the packages' versions."""
    source = file_of(module_of(name))
    digest = hashlib.sha256(b"optimized" if group_of(name).optimize else b"")
    for file in sorted({source, *imported(source)}):
        digest.update(file.read_bytes())
    for package in PACKAGES:
        try:
            digest.update(importlib.metadata.version(package).encode())
        except importlib.metadata.PackageNotFoundError:
            digest.update(b"-")
    return digest.hexdigest()[:8]


def imported(source: Path) -> list[Path]:
    """The files of this folder that a model's file imports."""
    imports = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ImportFrom)]
    return [file_of(node.module) for node in imports if node.module.startswith("models.")]


def described(source: Path) -> tuple[str, dict[str, Any]]:
    """The first paragraph of a model's docstring, and the constants of its file, found without importing it.

    `TOLERANCE` is one of the constants. If it is not the dtype's tolerance, `REASON` gives the reason.
    """
    tree = ast.parse(source.read_text())
    what = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    stated = {
        ast.unparse(node.targets[0]): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    return what, stated


def remove_older(name: str, folder: Path) -> None:
    """Remove the exports of former states of a model."""
    for path in folder.glob(f"{name}-????????.*"):
        path.unlink()


if __name__ == "__main__":
    main()
