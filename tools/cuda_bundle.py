"""Gathers what `tools/cuda_check.py` needs on a machine with a GPU and nothing to compile with, in build/cuda-check.

The extensions, and plans with inputs: of a folder of models, of the operators' tests of the onnx package, and of some
of the architectures of models/.
"""

from __future__ import annotations

import gzip
import lzma
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from drawn import blanked  # noqa: E402

import compiler  # noqa: E402
from compiler.reference import Reference  # noqa: E402
from compiler.zoo import read_index  # noqa: E402
from tests.onnx_backend.cases import RANDOM, data_sets, load_cases  # noqa: E402
from tests.trained.zoo import tolerance  # noqa: E402

FOLDER = ROOT / "build/cuda-check"
EXTENSIONS = ("_runtime", "_runtime_cuda")
ARCHITECTURES = ("hifigan", "unet", "dac_decoder", "resnet50", "mobilenet_v3", "vit_small", "bert_base")
"""Those of models/ that are timed beside PyTorch; the first three need nothing else there."""
LARGEST = 56 << 20
"""What may be carried beside the repository's own files, so that all is below 64 MiB."""


@click.command()
@click.option("--zoo", type=click.Path(path_type=Path), default=ROOT / "models", help="A folder of models.")
@click.option(
    "--models", type=click.Path(path_type=Path), default=ROOT / "build/models", help="Exported architectures."
)
def main(zoo: Path, models: Path) -> None:
    """Write build/cuda-check."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in EXTENSIONS:
        source, target = ROOT / f"compiler/{name}.abi3.so", FOLDER / f"{name}.abi3.so"
        if not source.exists():
            sys.exit(f"{source} is not there: `make cuda` builds it")
        subprocess.run(["strip", "--strip-unneeded", "-o", target, source], check=True)
        target.with_suffix(".so.xz").write_bytes(lzma.compress(target.read_bytes()))
        target.unlink()
    write("zoo", list(of_folder(zoo)))
    write("operators", list(of_operators()))
    write("architectures", list(of_architectures(models)) if models.exists() else [])
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    (FOLDER / "commit").write_text(commit.stdout)
    print(f"{FOLDER.relative_to(ROOT)}: {size() / 1e6:.1f} MB")
    if size() > LARGEST:
        sys.exit(f"that is more than {LARGEST / 1e6:.0f} MB")


def size() -> int:
    """The bytes of all files."""
    return sum(file.stat().st_size for file in FOLDER.iterdir())


def of_folder(folder: Path, names: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Models of a folder, with onnxruntime's results, and how far from them the processor's may be."""
    for entry in read_index(folder, names):
        plan, reference = compiler.compile(entry.path), Reference(entry.path)
        cases = [entry.inputs(case) for case in entry.cases]
        yield {
            "name": entry.name,
            "plan": plan.data,
            "cases": cases,
            "tolerance": entry.tolerance,
            "expected": [reference.run(case) for case in cases],
            "allowed": tolerance(entry.name, "pinned"),
        }


def of_architectures(folder: Path) -> Iterator[dict[str, Any]]:
    """Networks as large as the trained ones, whose weights are drawn where they run."""
    for entry in read_index(folder, ARCHITECTURES):
        case = entry.inputs(entry.cases[0])
        yield {"name": entry.name, **blanked(compiler.compile(entry.path).data), "cases": [case], "tolerance": None}


def of_operators() -> Iterator[dict[str, Any]]:
    """The tests of the onnx package that compile, and whose results are not random."""
    for name, case in sorted(load_cases().items()):
        model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
        if any(node.op_type in RANDOM for node in model.graph.node):
            continue
        try:
            plan = compiler.compile(model)
        except compiler.CompileError:
            continue  # as tests/onnx_backend/failing.toml says
        names = [info.name for info in compiler.load(plan).inputs]
        cases = [dict(zip(names, inputs, strict=True)) for inputs, _ in data_sets(case, model)]
        yield {"name": name, "plan": plan.data, "cases": cases, "tolerance": None}


def write(name: str, models: list[dict[str, Any]]) -> None:
    """Writes one file of plans with inputs."""
    with gzip.open(FOLDER / f"{name}.pickle.gz", "wb") as file:
        pickle.dump(models, file)
    print(f"{name}: {len(models)} plans")


if __name__ == "__main__":
    main()
