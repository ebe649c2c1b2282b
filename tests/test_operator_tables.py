"""The tables of operators, GPU kernels and forms in Rust: no operator, kernel, form or file is forgotten there.

The Rust compiler sees only what a table names. It does not compile the file of a forgotten family, and steps run on the
host if their kernel is forgotten. No operator is without a test.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from compiler import _runtime
from compiler.cli.ops import _operators

TESTS = Path(__file__).parent
PLAN = TESTS.parent / "runtime/plan/src"
OPS, GPU = PLAN / "ops", PLAN / "gpu"
KERNELS = PLAN.parent.parent / "device/kernels"
COMPILED = json.loads(_runtime.ops())
"""The family, the name and the placement of every op of the compiled runtime."""


def implemented(folder: Path, pattern: str) -> dict[str, str]:
    """The file of each operator that a line like the pattern names, one or several at once."""
    return {
        operator: path.stem
        for path in sorted(folder.rglob("*.rs"))
        for operators in re.findall(pattern, path.read_text(), re.MULTILINE)
        for operator in operators.split()
    }


def test_every_operator_has_an_op() -> None:
    """`runtime/plan/build.rs` finds the operators of `ops/`."""
    written = implemented(OPS, r"^(?:impl\b.* Operator for|operator! \{) (\w+)")
    assert len(written) > 100
    assert written == {op: family for family, op, _ in COMPILED}


def test_every_file_of_operators_is_compiled() -> None:
    """The build script declares the files in which it finds operators, and `mod.rs` declares the others."""
    declared = set(re.findall(r"^pub(?:\(crate\))? mod (\w+);", (OPS / "mod.rs").read_text(), re.MULTILINE))
    lost = {path.stem for path in OPS.glob("*.rs")} - declared - {family for family, _, _ in COMPILED} - {"mod"}
    assert not lost, f"these files of ops/ contain no `impl Operator for …`, and mod.rs does not declare them: {lost}"


def test_every_gpu_kernel_is_connected_to_its_operator() -> None:
    connected = implemented(GPU, r"^(?:gpu_kernel!\(|on_gpu! \{ )(\w+)")
    listed = {op for _, op, _ in COMPILED}
    assert connected.keys() == {op for _, op, placement in COMPILED if isinstance(placement, dict)}
    apart = [
        f"{operator} has an `impl OnGpu` in {family}.rs that no step uses: add `gpu_kernel!({operator}: …);` there"
        for operator, family in implemented(GPU, r"^impl OnGpu for (\w+)").items()
        if operator in listed and operator not in connected
    ]
    assert not apart
    named = implemented(GPU, r'"(\w+)"')
    unused = [path.name for path in sorted(KERNELS.glob("*.cu")) if path.stem not in named]
    assert not unused, f"no file of runtime/plan/src/gpu/ names the modules {unused}: connect each by `gpu_kernel!`"


def test_every_gpu_kernel_has_its_module() -> None:
    named = {
        module: path.name
        for path in sorted(GPU.rglob("*.rs"))
        for module in re.findall(r'^gpu_kernel!\(\w+: "(\w+)"', path.read_text(), re.MULTILINE)
    }
    assert len(named) > 30
    absent = [f"{file} names the module {module}" for module, file in named.items() if not _module(module).exists()]
    assert not absent, f"runtime/device/kernels/ has no such module: {absent}"


def _module(name: str) -> Path:
    return KERNELS / f"{name}.cu"


def test_every_form_of_convolutions_is_in_the_table_of_forms() -> None:
    """The compiler only warns that such a form is never constructed."""
    check_tables(
        "convolution/planner.rs",
        {"ConvForm": "FLOAT", "QuantizedConvForm": "QUANTIZED", "IntegerConvForm": "INTEGER"},
    )


def test_every_form_of_convolutions_on_a_gpu_is_in_the_table_of_forms() -> None:
    folder = TESTS.parent / "runtime/plan/src/gpu/conv"
    sources = "".join(path.read_text() for path in sorted(folder.glob("*.rs")) if path.name != "planner.rs")
    forms = re.findall(r"^impl GpuConvForm for (\w+)", sources, re.MULTILINE)
    tiles = re.findall(r"pub const (\w+): (\w+Form)\b", sources)
    table = re.search(r"const FORMS: .*?\];", (folder / "planner.rs").read_text(), re.DOTALL)
    assert len(forms) > 2 and len(tiles) > 2 and table is not None
    wanted = [*forms, *(f"{form}::{name}" for name, form in tiles)]
    missing = [form for form in wanted if not re.search(rf"&{form}\b", table[0])]
    assert not missing, f"add these forms to FORMS in runtime/plan/src/gpu/conv/planner.rs: {missing}"


def test_every_form_of_products_is_in_a_table_of_forms() -> None:
    tables = {"ProductForm": "FLOAT", "LowBitForm": "LOW_BIT", "RoundedForm": "ROUNDED", "IntegerForm": "INTEGER"}
    check_tables("products/planner.rs", tables)


def check_tables(file: str, tables: dict[str, str]) -> None:
    """Check that a file of `runtime/kernels/src/` has a table for each trait, with all its forms."""
    kernels = TESTS.parent / "runtime/kernels/src"
    sources = [path.read_text() for path in sorted(kernels.rglob("*.rs"))]
    for trait, table in tables.items():
        forms = [form for text in sources for form in re.findall(rf"^impl {trait} for (\w+)", text, re.MULTILINE)]
        found = re.search(rf"const {table}: .*?\];", (kernels / file).read_text(), re.DOTALL)
        assert forms and found is not None
        missing = [form for form in forms if not re.search(rf"&(?:\w+::)?{form}\b", found[0])]
        assert not missing, f"add these forms to {table} in runtime/kernels/src/{file}: {missing}"


def test_every_operator_outside_the_standard_has_a_test() -> None:
    """ONNX's own tests of backends run the operators of the standard."""
    sources = [path.read_text() for folder in ("lower", "contrib") for path in (TESTS / folder).glob("*.py")]
    tests = "".join(re.sub(r"^SCRATCH = \[\n.*?^\]", "", text, flags=re.DOTALL | re.MULTILINE) for text in sources)
    for name, _, _, domain in _operators():
        if not domain.startswith("ai.onnx"):
            assert re.search(rf"\b{name}\b", tests), f"no file of tests/lower or tests/contrib tests {domain}.{name}"
