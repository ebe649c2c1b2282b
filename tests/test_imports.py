"""The modules that `import compiler` imports: loading and running a plan needs no ONNX; every public name exists."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import compiler
from compiler import cli
from compiler.cli import zoo
from compiler.contrib import FAMILIES

ROOT = Path(__file__).parent.parent
NEEDS_TORCH = "dynamo"
COMPILING = ("onnx", "onnx_ir", "onnx_shape_inference", "networkx", "onnxruntime", "torch", "rich", "click")

RUN = """
import sys
sys.modules |= dict.fromkeys({missing})  # as if they were not installed
import compiler, numpy
session = compiler.load("runtime/plan/tests/plans/v1.plan")
with numpy.load("tests/golden/v1.npz") as arrays:
    outputs = session.run({{info.name: arrays[info.name] for info in session.inputs}})
    print(abs(outputs["y"] - arrays["y"]).max() < 1e-5)
"""


def python(code: str, *arguments: str) -> str:
    """Runs code in a new interpreter, and returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def has_torch() -> bool:
    """Whether PyTorch is installed, and `make test-fast` does not hide it."""
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError:
        return False
    return True


def test_a_plan_runs_without_what_compiles() -> None:
    assert python(RUN.format(missing=COMPILING)) == "True"


@pytest.mark.parametrize("name", ["compiler", "compiler.diff", "compiler.zoo"])
def test_type_checkers_see_the_public_names_of_lazy_packages(name: str) -> None:
    package = importlib.import_module(name)
    tree = ast.parse(Path(package.__file__ or "").read_text())
    (guard,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(guard.test) == "TYPE_CHECKING"
    imported = {
        alias.asname: (node.module, alias.name)
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(imported) == package.__all__ == dir(package)
    for public, (module, original) in imported.items():
        assert public == original
        if public == NEEDS_TORCH and not has_torch():
            continue
        assert getattr(package, public) is getattr(importlib.import_module(module or ""), public)


@pytest.mark.parametrize("name", compiler.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert name in dir(compiler)
    if name == NEEDS_TORCH and not has_torch():
        pytest.skip("needs PyTorch")
    assert getattr(compiler, name).__name__.rpartition(".")[2] == name


def test_modules_do_not_take_the_place_of_functions() -> None:
    names = ("compile", "export", "load", "verify")
    kinds = f"*(type(getattr(compiler, name)).__name__ for name in {names})"
    assert (
        python(f"import compiler, compiler.pipeline, compiler.backend; print({kinds})") == "function " * 3 + "function"
    )


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'decompile'"):
        compiler.decompile  # noqa: B018


IMPORTED = """
import sys
from compiler.__main__ import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & {packages}), "and of ours", end=" ")
print(*sorted({{name for name in sys.modules if name.startswith("compiler.")}} & {modules}))
"""

PACKAGES = {
    *("click", "dataclasses", "importlib", "ml_dtypes", "networkx", "numpy", "onnx", "onnx_ir", "onnx_shape_inference"),
    *("onnxruntime", "onnxscript", "rich", "safetensors", "scipy", "sympy", "tomlkit", "torch"),
}
"""Packages with a slow import, and packages that only some verbs need."""

EXPANSIONS = {f"compiler.contrib.{family}" for family in FAMILIES.values()}
"""The families of expansions. No verb imports them for a model without one of their operators."""

MODULES = EXPANSIONS | {
    *("compiler._runtime", "compiler.accuracy.reference", "compiler.bench.peaks", "compiler.cli.tables.profile"),
    *("compiler.page.report", "compiler.frontend.load", "compiler.pipeline", "compiler.plan"),
    "compiler.runtime.session",
}

ONNX = {"networkx", "onnx", "onnx_ir", "onnx_shape_inference"}
LISTING = {"click", "dataclasses", "importlib"}
RUNNING = LISTING | {"ml_dtypes", "numpy", "rich"}
OF_A_RUN = {"compiler._runtime", "compiler.plan", "compiler.runtime.session"}
OF_COMPILING = {"compiler._runtime", "compiler.frontend.load", "compiler.pipeline", "compiler.plan"}
COMPARING = RUNNING | ONNX | {"onnxruntime"}
OF_COMPARING = {"compiler.accuracy.reference", "compiler.runtime.session"}
DIGITS = "models/digits.onnx"
PLAN = "runtime/plan/tests/plans/v1.plan"
QUICK = ("--threads", "1", "--seconds", "0.01")

ZOO_VERBS = ("compare", "fetch", "index", "page", "precision", "run", "slice", "update")

ALLOWED: dict[tuple[str, ...], tuple[set[str], set[str]]] = {
    ("--help",): (LISTING, set()),
    ("--version",): (LISTING, set()),
    ("explain", "CC0301"): (LISTING | {"rich"}, set()),
    ("run", "--help"): (RUNNING, set()),
    ("run", PLAN): (RUNNING, OF_A_RUN),
    ("batch", "--help"): (RUNNING, set()),
    ("inspect", PLAN): (RUNNING, OF_A_RUN),
    ("compile", DIGITS, "--dim", "batch=1", "-o", "{folder}/digits.plan"): (RUNNING | ONNX, OF_COMPILING),
    ("compile", DIGITS, "-o", "{folder}/digits.plan"): (RUNNING | ONNX, OF_COMPILING),
    ("check", DIGITS): (RUNNING | ONNX, OF_COMPILING),
    ("verify", "--help"): (RUNNING, set()),
    ("verify", DIGITS, "--threads", "1"): (COMPARING, OF_COMPILING | OF_COMPARING),
    ("bench", "--help"): (RUNNING, set()),
    ("bench", PLAN, *QUICK): (RUNNING | ONNX, OF_A_RUN | OF_COMPARING | {"compiler.frontend.load"}),
    ("bench", DIGITS, *QUICK): (COMPARING, OF_COMPILING | OF_COMPARING),
    ("export", "--help"): (LISTING | {"rich"}, set()),
    ("ops",): (RUNNING | ONNX, {"compiler._runtime", "compiler.plan"}),
    ("bisect", "--help"): (RUNNING, set()),
    ("diff", "--help"): (RUNNING, set()),
    ("zoo", "--help"): (RUNNING, set()),
    **{("zoo", verb, "--help"): (RUNNING, set()) for verb in ZOO_VERBS},
    ("zoo", "run", "--zoo", "models"): (RUNNING, {"compiler._runtime"}),  # the process of a model imports the compiler
}
"""Arguments → the parts of `PACKAGES` and of `MODULES` that the process may import."""


def test_every_verb_has_a_row() -> None:
    assert {arguments[0] for arguments in ALLOWED if not arguments[0].startswith("-")} == cli.VERBS.keys()
    assert {*ZOO_VERBS} == zoo.command.commands.keys()


OF_A_FAMILY = """
import sys
import onnx.parser, compiler
head = '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]> m (float[2] x) => (float[2] y)'
compiler.compile(onnx.parser.parse_model(head + sys.argv[1]))
print(*sorted({{name for name in sys.modules if name.startswith("compiler.contrib.")}} & {}))
"""


@pytest.mark.parametrize(
    ("node", "families"),
    [
        ("{ y = Relu (x) }", ""),
        ("{ y = com.microsoft.BiasAdd (x, x, x) }", "compiler.contrib.bias"),
        ("{ y = SimplifiedLayerNormalization (x, x) }", "compiler.contrib.norm"),
    ],
)
def test_a_family_is_imported_for_its_operators(node: str, families: str) -> None:
    assert python(OF_A_FAMILY.format(EXPANSIONS), node) == families


@pytest.mark.parametrize("arguments", ALLOWED, ids=" ".join)
def test_a_verb_imports_what_it_needs(arguments: tuple[str, ...], tmp_path: Path) -> None:
    packages, modules = ALLOWED[arguments]
    given = [each.format(folder=tmp_path) for each in arguments]
    code = IMPORTED.format(packages=PACKAGES, modules=MODULES)
    imported, _, ours = python(code, *given).splitlines()[-1].partition(" and of ours")
    assert {*imported.split()} <= packages
    assert {*ours.split()} <= modules
