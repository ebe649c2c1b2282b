"""Gathers what `tools/cuda_check.py` needs on a machine with a GPU and nothing to compile with, in build/cuda-check.

The extensions, and plans with inputs: of our own models and of a folder of others, of the operators' tests of the onnx
package, of some of the architectures of models/, and small ones for what only a GPU has.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import onnx
import onnx.parser

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cuda_files import FOLDER, Model, pack, write  # noqa: E402
from drawn import blanked  # noqa: E402

import compiler  # noqa: E402
from compiler.reference import Reference  # noqa: E402
from compiler.zoo import read_index  # noqa: E402
from tests.onnx_backend.cases import RANDOM, data_sets, load_cases  # noqa: E402
from tests.trained.zoo import allowed  # noqa: E402

EXTENSIONS = ("_runtime", "_runtime_cuda")
ARCHITECTURES = {
    "hifigan": None,
    "unet": None,
    "dac_decoder": None,
    "resnet50": "torchvision",
    "mobilenet_v3": "torchvision",
    "vit_small": "torchvision",
    "bert_base": "transformers",
}
"""Those of models/ that are timed beside PyTorch, with the package that each needs beside it."""
SANITIZED = ("super_resolution_pt", "dtln_model_1", "ultraface_rfb320", "digits")
"""Models that run under compute-sanitizer's memcheck, where they are there."""
VALUES = ", ".join(f"v{number}" for number in range(48))
"""As many as fill any GPU's memory."""
GRAPHS = {
    "softmax": "(float[n, m] x) => (float[n, m] y) { y = Softmax(x) }",
    "topk": "(float[n, m] x, int64[1] k) => (float[n, p] y, int64[n, p] i) { y, i = TopK(x, k) }",
    "conv": "(float[1, 16, 20, 20] x, float[8, 16, 3, 3] w) => (float[1, 8, 18, 18] y) { y = Conv(x, w) }",
    "gather": "(float[n, m] x, int64[p] places) => (float[p, m] y) { z = Add(x, x) y = Gather(z, places) }",
    "expand": "(float[1] x, int64[1] shape) => (float[n] y) { y = Expand(x, shape) }",
    "fill": f"""(double[1] x, int64[1] shape) => (double[n] y) {{
        {" ".join(f"{value} = Expand(x, shape)" for value in VALUES.split(", "))} y = Concat<axis = 0>({VALUES})
    }}""",
}
"""Small models for what only a GPU has; the first one's plan opens the device."""
RACED = ("softmax", "topk", "conv")
"""Those whose kernels share memory between threads."""
LARGEST = 56 << 20
"""What may be carried beside the repository's own files, so that all is below 64 MiB."""


@click.command()
@click.option("--zoo", type=click.Path(path_type=Path), default=ROOT / "models", help="A folder of models.")
@click.option(
    "--models", type=click.Path(path_type=Path), default=ROOT / "build/models", help="Where architectures are exported."
)
def main(zoo: Path, models: Path) -> None:
    """Write build/cuda-check; what is there is kept until the new one is whole."""
    part = FOLDER.with_name(f"{FOLDER.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    gather(part, zoo, models)
    size = sum(file.stat().st_size for file in part.iterdir())
    print(f"{FOLDER.relative_to(ROOT)}: {size / 1e6:.1f} MB")
    if size > LARGEST:
        sys.exit(f"that is more than {LARGEST / 1e6:.0f} MB")
    shutil.rmtree(FOLDER, ignore_errors=True)
    part.rename(FOLDER)


def gather(folder: Path, zoo: Path, models: Path) -> None:
    """Writes every file of the bundle."""
    for extension in [ROOT / f"compiler/{name}.abi3.so" for name in EXTENSIONS]:
        if not extension.exists():
            sys.exit(f"{extension} is not there: `make cuda` builds it")
        pack(extension, folder)
    files = {
        "zoo": [model for each in sorted({ROOT / "models", zoo.resolve()}) for model in of_folder(each)],
        "operators": of_operators(),
        "architectures": of_architectures(models),
        "small": small(),
    }
    for name, plans in files.items():
        found = list(plans)
        write(folder, name, found)
        print(f"{name}: {len(found)} plans")
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    (folder / "commit").write_text(commit.stdout)


def of_folder(folder: Path, names: Sequence[str] = ()) -> Iterator[Model]:
    """Models of a folder, with onnxruntime's results, and how far from them the processor's may be."""
    for entry in read_index(folder, names):
        plan, reference = compiler.compile(entry.path), Reference(entry.path)
        cases = [entry.inputs(case) for case in entry.cases]
        model = {
            "name": entry.name,
            "plan": plan.data,
            "cases": cases,
            "tolerance": entry.tolerance,
            "expected": [reference.run(case) for case in cases],
            "allowed": allowed(entry.name),
        }
        yield model | ({"sanitizer": "memcheck"} if entry.name in SANITIZED else {})


def of_architectures(folder: Path) -> Iterator[Model]:
    """Networks as large as the trained ones, whose weights are drawn where they run; of those left out, why."""
    lacking = {name: package for name, package in ARCHITECTURES.items() if package and not is_installed(package)}
    names = [name for name in ARCHITECTURES if name not in lacking]
    subprocess.run([sys.executable, "-m", "models", "--folder", folder, *names], cwd=ROOT, check=True)
    for entry in read_index(folder, names):
        made = {"name": entry.name, "module": f"models.{entry.name}", "tolerance": None}
        yield made | blanked(compiler.compile(entry.path).data) | {"cases": [entry.inputs(entry.cases[0])]}
    for name, package in lacking.items():
        print(f"{name} is left out: it needs {package}, which is not installed")
        yield {"name": name, "left_out": f"left out of the bundle for want of {package}"}


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def of_operators() -> Iterator[Model]:
    """The tests of the onnx package that compile, and whose results are not random."""
    for name, case in sorted(load_cases().items()):
        model = case.model if case.model is not None else onnx.load(Path(case.model_dir or "") / "model.onnx")
        if any(node.op_type in RANDOM for node in model.graph.node):
            continue
        try:
            plan = compiler.compile(model)
        except compiler.CompileError:
            continue  # as tests/onnx_backend/failing.toml says
        names = [info.name for info in compiler.load(plan).inputs]
        cases = [dict(zip(names, inputs, strict=True)) for inputs, _ in data_sets(case, model)]
        yield {"name": name, "plan": plan.data, "cases": cases, "tolerance": None}


def small() -> Iterator[Model]:
    """Plans for what only a GPU has, as they are written; those of `RACED` run under compute-sanitizer's racecheck."""
    x, shape = np.random.default_rng(0).standard_normal((1, 16, 20, 20), np.float32), np.array([3])
    rows, one = x.reshape(16, 400)[:4], np.ones(1, np.float32)
    cases = {
        "softmax": {"x": rows},
        "topk": {"x": rows, "k": np.array([7])},
        "conv": {"x": x, "w": np.random.default_rng(1).standard_normal((8, 16, 3, 3), np.float32)},
        "gather": {"x": rows, "places": np.array([0, -1, 2])},
        "expand": {"x": one, "shape": shape},
        "fill": {"x": one.astype(np.float64), "shape": shape},
    }
    for name, case in cases.items():
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {GRAPHS[name]}')
        plan = compiler.compile(model, compiler.Options(optimize=False))
        made = {"name": name, "plan": plan.data, "cases": [case], "tolerance": None}
        yield made | ({"sanitizer": "racecheck"} if name in RACED else {})


if __name__ == "__main__":
    main()
