"""The rules of the architecture: imports, the lengths of files and functions, and generated files."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from tests.sources import files

ROOT = Path(__file__).parent.parent
FILE_LINES, FUNCTION_LINES = 400, 40

PYTHON_LAYERS = [
    {"_runtime", "atomic_files", "ir", "lazy", "validate"},
    {"errors"},
    {"attributes", "custom_modules", "frontend", "plan", "rewrite"},
    {"array_files", "contrib", "custom", "processes"},
    {"lower", "options", "runtime"},
    {"calibration"},
    {"passes"},
    {"weight_passes"},
    {"pipeline"},
    {"accuracy", "backend", "batch", "dynamo", "ort"},
    {"ray"},
    {"__init__"},
    {"bench"},
    {"zoo"},
    {"diff"},
    {"page"},
    {"bisect"},
    {"cli"},
    {"__main__"},
]
"""Every module and package of `compiler`; each imports only from the layers before its own. `__init__` is the API."""

FOREIGN = {
    "onnx": {
        "accuracy.onnxruntime_values",
        "accuracy.reference",
        "backend",
        "bench.peaks",
        "frontend.declarations",
        "frontend.export",
        "frontend.external",
        "frontend.held",
        "frontend.load",
        "frontend.tensors",
        "frontend.tolerance",
        "ir.onnx_schema",
        "zoo.serialized",
    },
    "onnx_shape_inference": {
        "ir.shape_library",
        "ir.sympy_later",
    },  # shape_fixes lists which of its answers are corrected
    "torch": {
        "accuracy.exported_arguments",
        "accuracy.exported_place",
        "accuracy.exported_taps",
        "accuracy.module_runs",
        "dynamo.backend",
        "dynamo.checks",
        "dynamo.core",
        "dynamo.decompositions",
        "dynamo.plans",
        "dynamo.runner",
        "dynamo.split",
        "dynamo.translation",
        "dynamo.weights",
        "frontend.captured",
        "frontend.export",
        "frontend.export_arguments",
        "frontend.export_reasons",
        "frontend.local_response",
        "frontend.module_state",
        "frontend.scripted",
        "frontend.scripted_functions",
        "frontend.translations",
        "frontend.translations.attention",
        "runtime.libraries",
    },
    "onnxruntime": {"accuracy.onnxruntime_session", "accuracy.onnxruntime_values"},
    "openvino": {"bench.engines"},
    "MNN": {"bench.mnn"},
    "PIL": {"batch.images"},
    "pyarrow": {"batch.arrow"},
    "ray": {"ray.packages"},
    "starlette": {"ray.packages"},
}
"""Packages that only some modules may import, outside of type checking."""

COMPUTED: dict[str, tuple[str, str]] = {
    "batch.arrow": ("", "pyarrow's modules"),
    "bench.cold": ("", "the package of an engine that is compared"),
    "bench.engines": ("", "the package of an engine that is compared"),
    "cli": ("cli", "the module of a command"),
    "cli.factory": ("", "the caller's module"),
    "cli.report": ("passes", "the module of a pass, whose docstring `--help` and the report show"),
    "custom_modules": ("", "the caller's module"),
    "contrib.expansion.expand": ("contrib", "the family of an operator"),
    "frontend.captured": ("", "PyTorch's modules"),
    "ir.sympy_later": ("", "sympy"),
    "lazy": ("", "the package whose `__init__` calls it, and which repeats the imports for type checkers"),
    "lower": ("lower", "every family"),
    "plan.ops": ("plan", "the family of an op"),
    "ray.packages": ("", "Ray's modules"),
    "runtime.devices": ("_runtime", "the extension of a device"),
}
"""Modules that compute the name of what they import → its package in `compiler`, or "" for others; and what it is."""

PYTHON = sorted((ROOT / "compiler").rglob("*.py"))
DEVELOPERS = sorted(
    path for folder in ("benchmarks", "models", "tests", "tools") for path in (ROOT / folder).rglob("*.py")
)
"""The Python outside the package."""


COMPILED = sorted(
    path
    for folder in ("runtime", "tests/standin")
    for path in files(ROOT / folder)
    if path.suffix in (".rs", ".cu", ".cuh", ".cpp", ".h")
)
"""The Rust, CUDA and C++ files."""
RUST = [
    path for path in COMPILED if path.suffix == ".rs" and not {"tests", "benches"} & {*path.relative_to(ROOT).parts}
]
"""The Rust code of the crates, whose files may contain tests."""
PAGE = sorted(path for kind in ("js", "css", "html") for path in (ROOT / "compiler/page").rglob(f"*.{kind}"))
"""The templates of the pages."""
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MAKEFILES = [ROOT / "Makefile", *sorted((ROOT / "tools").glob("*.mk"))]
OVER_BUDGET: dict[str, str] = {}
"""Files and functions that are too long, with the reasons. An entry for a short one is an error."""

UNWANTED_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\b(todo|unimplemented|dbg)!")
UNWANTED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def layer_of(module: str, layers: list[set[str]]) -> int | None:
    return next((index for index, layer in enumerate(layers) if module in layer), None)


def python_module(path: Path) -> str:
    """The dotted name of a file's module below `compiler`. For `__init__.py`, the name of its package."""
    parts = path.relative_to(ROOT / "compiler").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def unit_of(module: str) -> str:
    """The name of a module in the table of layers: a module directly in `compiler`, or a package in it."""
    return module.partition(".")[0]


def python_imports(path: Path, *, typing: bool) -> Iterator[str]:
    """The modules that a file imports, also in functions. `typing` includes imports for annotations alone."""
    tree = ast.parse(path.read_text())
    guards = [] if typing else [node for node in ast.walk(tree) if is_typing_guard(node)]
    hidden = {id(node) for guard in guards for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import, whose package this function does not know"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and is_import(node):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))


def is_import(call: ast.Call) -> bool:
    """Whether a call imports a module by its name."""
    return ast.unparse(call.func).rpartition(".")[2] in ("import_module", "__import__")


def computes_imports(path: Path) -> bool:
    """Whether a file imports a module whose name it does not state."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and is_import(node)]
    return any(not isinstance(call.args[0], ast.Constant) for call in calls)


def is_typing_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


MODULES = {python_module(path): path for path in PYTHON}


@functools.cache
def own_imports(module: str) -> set[str]:
    """The modules of `compiler` that one of them imports: at its top, in functions, and for annotations alone."""
    found = set()
    for imported in python_imports(MODULES[module], typing=True):
        package, _, rest = imported.partition(".")
        if rest not in {*MODULES, "_runtime"}:  # a name in a module
            rest = rest.rpartition(".")[0]
        if package == "compiler":
            found.add(rest or "__init__")
    return found


def test_every_python_module_is_in_one_layer() -> None:
    listed = [unit for layer in PYTHON_LAYERS for unit in layer]
    assert sorted(listed) == sorted({"_runtime", *map(unit_of, MODULES)})


def test_python_imports_go_one_way() -> None:
    wrong = {}
    for module in MODULES:
        own = layer_of(unit_of(module), PYTHON_LAYERS)
        assert own is not None, module
        allowed = {unit_of(module)}.union(*PYTHON_LAYERS[:own])
        if found := {each for each in own_imports(module) if unit_of(each) not in allowed}:
            wrong[f"compiler.{module}"] = found
    assert not wrong, "these modules may not import these: they are in the module's own layer or a later one"


def test_imports_in_functions_and_by_name_count(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import a\n"
        "def load():\n    from b import c\n    import_module('d')\n    return __import__('e')\n"
    )
    assert set(python_imports(path, typing=False)) == {"typing.TYPE_CHECKING", "b.c", "d", "e"}
    assert "a" in set(python_imports(path, typing=True))
    assert not computes_imports(path)
    path.write_text("importlib.import_module(f'compiler.{name}')\n")
    assert computes_imports(path)


def test_computed_imports_go_one_way() -> None:
    assert {module for module, path in MODULES.items() if computes_imports(path)} == COMPUTED.keys()
    for module, (package, _) in COMPUTED.items():
        own = layer_of(unit_of(module), PYTHON_LAYERS)
        before = set().union(*PYTHON_LAYERS[:own])
        assert package in before | {unit_of(module), ""}, f"compiler.{module} may not import compiler.{package}"


def test_no_python_modules_import_each_other_in_a_circle() -> None:
    graph = networkx.DiGraph([(module, each) for module in MODULES for each in own_imports(module)])
    circles = [sorted(each) for each in networkx.strongly_connected_components(graph) if len(each) > 1]
    assert not circles


def test_foreign_packages_are_imported_where_they_belong() -> None:
    wrong = {}
    for module, path in MODULES.items():
        imported = {name.partition(".")[0] for name in python_imports(path, typing=False)}
        if found := {package for package in imported if module not in FOREIGN.get(package, {module})}:
            wrong[f"compiler.{module}"] = found
    assert not wrong, "these modules may not import these packages"


def test_the_kernels_know_nothing_of_tensors() -> None:
    manifest = (ROOT / "runtime/kernels/Cargo.toml").read_text()
    assert "candle-core" not in manifest
    assert "pyo3" not in (ROOT / "runtime/plan/Cargo.toml").read_text()


TESTS = re.compile(
    r"^#\[cfg\((?:all\()?test\b.*\n"  # the condition, other attributes, then an item of one line or up to its brace
    r"(?:#\[.*\n)*(?:.*;\n|(?:.*\n)*?\}\n)",
    re.MULTILINE,
)


def without_tests(source: str) -> str:
    """A Rust file without the items that only tests have."""
    return TESTS.sub("", source)


def test_only_tests_are_left_out() -> None:
    head, tail = "use a;\n", "fn run() {\n    b();\n}\n"
    for item in ("mod tests;\n", "mod tests {\n    fn c() {\n    }\n}\n", '#[path = "t.rs"]\nmod tests;\n'):
        for condition in ("test", 'all(test, target_arch = "x86_64")'):
            assert without_tests(f"{head}#[cfg({condition})]\n{item}{tail}") == head + tail


def test_files_are_short() -> None:
    """Code that a program generates too, and pages that no program generates. Not data, such as tables in TOML."""
    pages = [each for each in DOCUMENTS if not each.read_text().startswith("<!-- GENERATED")]
    paths = [*PYTHON, *DEVELOPERS, *COMPILED, *PAGE, *pages, *MAKEFILES]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert len(lengths) > 1500
    long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES}
    assert long.keys() == {name for name in OVER_BUDGET if " " not in name}, long


def test_functions_fit_a_screen() -> None:
    long, count = set(), 0
    for path in (*PYTHON, *DEVELOPERS, *RUST, *PAGE):
        for name, lines in python_functions(path) if path.suffix == ".py" else braced_functions(path):
            count += 1
            if lines > FUNCTION_LINES:
                long.add(f"{path.relative_to(ROOT)} {name}")
    assert count > 10_000
    known = {name for name in OVER_BUDGET if " " in name}
    assert not long - known, f"these functions have more than {FUNCTION_LINES} lines: split them"
    assert not known - long, "OVER_BUDGET lists these functions, but they are short: remove them from it"


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function with the number of its lines: decorators, signature and body, the docstring aside.

    For a function outside of the package, only the lines of its body count: decorators hold the tables of tests.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            head = node.body[0].lineno - min(each.lineno for each in (node, *node.decorator_list))
            body = node.body[ast.get_docstring(node) is not None :]
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield node.name, lines + (head if path in PYTHON else 0)


def test_decorators_count_as_lines_of_a_command() -> None:
    lengths = dict(python_functions(ROOT / "compiler/cli/explain.py"))
    source = (ROOT / "compiler/cli/explain.py").read_text()
    command = source[source.index("@click.command(") :].splitlines()
    docstring = [at for at, line in enumerate(command) if line.strip().startswith('"""') or line.endswith('"""')]
    assert lengths["command"] == len(command) - (docstring[1] - docstring[0] + 1)


def braced_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of Rust or JavaScript with the number of its lines, as rustfmt lays them out."""
    lines = without_tests(path.read_text()).splitlines()
    for index, line in enumerate(lines):
        if found := re.match(r"( *)(?:pub(?:\([^)]*\))? )?(?:const |unsafe |async )*(?:fn|function) (\w+)", line):
            if line.endswith(("}", ";")):
                continue
            end = re.compile(rf"{found[1]}(}}|\S.*;$)")
            yield found[2], next((at for at, text in enumerate(lines[index:]) if end.match(text)), 0) + 1


def test_nothing_is_left_for_later() -> None:
    code = {*PYTHON, *DEVELOPERS, *COMPILED, *PAGE, *DOCUMENTS, *MAKEFILES} - {Path(__file__)}  # which lists the words
    left = [path for path in code if UNWANTED_WORDS.search(path.read_text())]
    assert not left


def test_names_say_what_a_file_is_for() -> None:
    parts = {path: path.relative_to(ROOT).parts for path in files(ROOT)}
    named = [path for path, names in parts.items() if not any(name.startswith(".") for name in names)]
    assert len(named) > 2000
    assert not [path for path in named if UNWANTED_NAMES & {name.partition(".")[0] for name in parts[path]}]


def test_every_lowering_family_has_its_namesake() -> None:
    from compiler.lower.node import LOWERINGS

    families = {lowering.function.__module__.rpartition(".")[2] for lowering in LOWERINGS.values()}
    families -= {"training"}  # each optimizer becomes several operators of the runtime
    runtime = {path.stem for path in (ROOT / "runtime/plan/src/ops").iterdir()}
    assert families <= runtime, f"no runtime/plan/src/ops/<family>.rs for {sorted(families - runtime)}"


def test_no_built_file_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    wrong = [name for name in listed if name.endswith((".so", ".pyc", ".pyd")) or "target/" in name]
    assert not wrong


def test_generated_files_are_fresh() -> None:
    from compiler.plan.generate import files

    made = files()
    stale = [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]
    assert not stale, "they differ from the Rust source: run `make generate`"
    lost = set((ROOT / "compiler/plan/ops").glob("*.py")) - made.keys()
    assert not lost, f"the Rust source has no such families: delete {sorted(path.name for path in lost)}"


@pytest.mark.parametrize("model", sorted((ROOT / "models").glob("*.onnx")), ids=lambda path: path.stem)
def test_every_pass_changes_nothing_the_second_time(model: Path) -> None:
    from compiler import CompileError, Options
    from compiler.frontend.load import load_model
    from compiler.ir.text import graph_text
    from compiler.pipeline import passes

    graph = load_model(model).model
    try:
        for step in passes(Options()):
            step.run(graph)
            text = graph_text(graph.graph)
            again = step.run(graph)
            assert not again.changed, f"{step.name} fires again"
            assert graph_text(graph.graph) == text, f"{step.name} changes the graph again"
    except CompileError:
        assert model.stem == "digits_3d"
