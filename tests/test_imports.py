"""What `import compiler` brings along: loading and running a plan needs no ONNX, and every public name is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import compiler

ROOT = Path(__file__).parent.parent
COMPILING = ("onnx", "onnx_ir", "onnx_shape_inference", "networkx", "onnxruntime", "torch", "rich", "click")

RUN = """
import sys
sys.modules |= dict.fromkeys({missing})  # as if they were not installed
import compiler, numpy
session = compiler.load("tests/golden/v1.plan")
with numpy.load("tests/golden/v1.npz") as arrays:
    outputs = session.run({{info.name: arrays[info.name] for info in session.inputs}})
    print(abs(outputs["y"] - arrays["y"]).max() < 1e-5)
"""


def python(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_plan_runs_without_what_compiles() -> None:
    assert python(RUN.format(missing=COMPILING)) == "True"


@pytest.mark.parametrize("name", compiler.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert name in dir(compiler)
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


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_list_of_verbs_imports_none(option: str) -> None:
    code = f"""
import sys
from compiler.cli import main
try:
    main(["{option}"])
except SystemExit:
    print(*sorted({{"numpy", "rich", "onnx", "compiler.cli.compile"}} & sys.modules.keys()), "end")
"""
    assert python(code).splitlines()[-1] == "end"
