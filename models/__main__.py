"""`python -m models`: exports the architectures to a folder for `candlec bench --zoo` and `candlec zoo`.

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

HERE = Path(__file__).parent
MODELS = (
    "resnet18",
    "resnet50",
    "mobilenet_v3",
    "efficientnet_b0",
    "convnext_tiny",
    "vit_small",
    "bert_base",
    "gpt2_prefill",
    "gpt2_decode",
    "whisper_tiny_encoder",
    "dac_decoder",
    "hifigan",
    "unet",
)
PACKAGES = ("torch", "torchvision", "transformers", "onnxscript")

console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(MODELS), metavar="[NAME]...")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/models"), show_default=True)
def main(names: tuple[str, ...], folder: Path) -> None:
    """Export the named models, by default all, to FOLDER, with inputs and an INDEX.json."""
    folder.mkdir(parents=True, exist_ok=True)
    missing: dict[str, str] = {}
    for number, name in enumerate(names or MODELS, 1):
        if not is_exported(name, folder):
            try:
                export(name, folder, f"{number}/{len(names or MODELS)}")
            except ModuleNotFoundError as error:
                missing[name] = (error.name or str(error)).partition(".")[0]
    entries = [entry(name, folder) for name in MODELS if is_exported(name, folder)]
    (folder / "INDEX.json").write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
    for name, package in missing.items():
        console.print(f'✗ {name} needs {package}, which is not installed: run pip install "candle-compiler[models]"')
    sys.exit(1 if missing else 0)


def files(name: str, folder: Path) -> tuple[Path, Path]:
    """The files of the model and its inputs, for the present state of the source."""
    stem = f"{name}-{key(HERE / f'{name}.py')}"
    return folder / f"{stem}.onnx", folder / f"{stem}.npz"


def is_exported(name: str, folder: Path) -> bool:
    """Whether the present state of a model is exported."""
    return all(file.exists() for file in files(name, folder))


def entry(name: str, folder: Path) -> dict[str, Any]:
    """The model's entry of the index."""
    model, inputs = files(name, folder)
    source = HERE / f"{name}.py"
    what, stated = described(source)
    found = {"name": name, "file": model.name, "source": f"models/{source.name}", "what": what, "cases": [inputs.name]}
    return {**found, "tolerance": stated["TOLERANCE"], "reason": stated["REASON"]} if "REASON" in stated else found


def export(name: str, folder: Path, progress: str) -> None:
    """Write the model and its inputs, and remove former states. The model gets its name when it is complete."""
    import torch

    import compiler

    module = importlib.import_module(f"models.{name}")
    path, inputs = files(name, folder)
    remove_older(name, folder)
    started = time.perf_counter()
    with console.status(f"{progress} exporting {name}"), torch.no_grad():
        given = module.inputs()
        part = path.with_suffix(".part")
        compiler.export(module.build(), tuple(given.values()), part, outputs=module.OUTPUTS)
        np.savez(inputs, **{key: tensor.numpy() for key, tensor in given.items()})
        part.rename(path)
    size, seconds = path.stat().st_size / 1e6, time.perf_counter() - started
    console.print(f"{progress} {path.name}: {size:.0f} MB in {seconds:.0f} s")


def key(source: Path) -> str:
    """A digest of everything that an export depends on: the model's file, its imports, and the packages' versions."""
    digest = hashlib.sha256()
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
    return [HERE / f"{node.module.removeprefix('models.')}.py" for node in imports if node.module.startswith("models.")]


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
