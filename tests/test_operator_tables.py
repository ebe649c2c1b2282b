"""The tables of operators and GPU kernels in Rust: no operator, kernel or file is forgotten there.

The Rust compiler sees only what a table names. It does not compile the file of a forgotten family, and steps run on the
host if their kernel is forgotten. No operator is without a test.
"""

from __future__ import annotations

import re
from pathlib import Path

from compiler.cli.ops import _operators

TESTS = Path(__file__).parent
PLAN = TESTS.parent / "runtime/plan/src"
OPS, GPU = PLAN / "ops", PLAN / "gpu"
KERNELS = PLAN.parent.parent / "device/kernels"


def table(file: Path, macro: str) -> dict[str, str]:
    """The family of each operator in the table that a macro reads: a line is `family: Operator …;`.

    `<Op>` may follow an operator.
    """
    found = re.search(rf"^{macro}! \{{\n(.*?)^\}}", file.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, f"{file.relative_to(PLAN)} has no table `{macro}! {{ … }}`"
    lines = re.findall(r"^ +(\w+): ([\w ]+);$", found[1].replace("<Op>", ""), re.MULTILINE)
    return {operator: family for family, operators in lines for operator in operators.split()}


def implemented(folder: Path, pattern: str) -> dict[str, str]:
    """The file of each operator that a line like the pattern names, one or several at once."""
    return {
        operator: path.stem
        for path in sorted(folder.rglob("*.rs"))
        for operators in re.findall(pattern, path.read_text(), re.MULTILINE)
        for operator in operators.split()
    }


def forgotten(written: dict[str, str], listed: dict[str, str], file: str) -> list[str]:
    """A sentence for each operator that the table in a file does not list."""
    return [
        f"{operator} is written in {family}.rs: add it to the line `{family}: …;` of the table in {file}"
        for operator, family in written.items()
        if operator not in listed
    ]


def test_every_operator_is_in_the_table_of_operators() -> None:
    written = implemented(OPS, r"^(?:impl(?:<.*?>)? Operator for|operator! \{) (\w+)")
    assert len(written) > 100
    assert not forgotten(written, table(OPS / "mod.rs", "ops"), "runtime/plan/src/ops/mod.rs")


def test_every_gpu_kernel_is_in_the_table_of_kernels() -> None:
    written = implemented(GPU, r"^gpu_kernel!\((\w+):") | implemented(GPU, r"^on_gpu! \{ ([\w ]+) \}")
    assert len(written) > 50
    assert not forgotten(written, table(GPU / "mod.rs", "kernels"), "runtime/plan/src/gpu/mod.rs")


def test_every_gpu_kernel_is_connected_to_its_operator() -> None:
    listed = table(OPS / "mod.rs", "ops")
    connected = implemented(GPU, r"^gpu_kernel!\((\w+):") | table(GPU / "mod.rs", "kernels")
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
    forms = re.findall(r"^impl ConvForm for (\w+)", sources, re.MULTILINE)
    tiles = re.findall(r"pub const (\w+): (\w+Form)\b", sources)
    table = re.search(r"const FORMS: .*?\];", (folder / "planner.rs").read_text(), re.DOTALL)
    assert len(forms) > 2 and len(tiles) > 2 and table is not None
    wanted = [*forms, *(f"{form}::{name}" for name, form in tiles)]
    missing = [form for form in wanted if not re.search(rf"&{form}\b", table[0])]
    assert not missing, f"add these forms to FORMS in runtime/plan/src/gpu/conv/planner.rs: {missing}"


def test_every_form_of_products_is_in_a_table_of_forms() -> None:
    check_tables("products/planner.rs", {"ProductForm": "FLOAT", "LowBitForm": "LOW_BIT", "IntegerForm": "INTEGER"})


def check_tables(file: str, tables: dict[str, str]) -> None:
    """Check that a file of `runtime/kernels/src/` has a table for each trait, with all its forms."""
    kernels = TESTS.parent / "runtime/kernels/src"
    sources = [path.read_text() for path in sorted(kernels.rglob("*.rs"))]
    for trait, table in tables.items():
        forms = [form for text in sources for form in re.findall(rf"^impl {trait} for (\w+)", text, re.MULTILINE)]
        found = re.search(rf"const {table}: .*?\];", (kernels / file).read_text(), re.DOTALL)
        assert forms and found is not None
        missing = [form for form in forms if not re.search(rf"&(?:\w+::)?{form}\b", found[0])]
        assert not missing, f"add these forms to {table} in runtime/kernels/src/products/planner.rs: {missing}"


def test_every_operator_outside_the_standard_has_a_test() -> None:
    """ONNX's own tests of backends run the operators of the standard."""
    tests = "".join(path.read_text() for folder in ("lower", "contrib") for path in (TESTS / folder).glob("*.py"))
    for name, _, _, domain in _operators():
        if not domain.startswith("ai.onnx"):
            assert re.search(rf"\b{name}\b", tests), f"no file of tests/lower or tests/contrib tests {domain}.{name}"


def test_a_forgotten_line_is_reported() -> None:
    sentence = "Hypot is written in binary.rs: add it to the line `binary: …;` of the table in ops/mod.rs"
    assert forgotten({"Binary": "binary", "Hypot": "binary"}, {"Binary": "binary"}, "ops/mod.rs") == [sentence]
