"""Writes `plan.schema.json` and the modules of `compiler/plan/ops/` from the Rust types of a plan.

`make generate`, or `python -m compiler.plan.generate` alone, runs it.

A struct becomes a class with its fields. An enum without contents becomes a `Literal`. An enum with contents becomes a
class that contains a class for each variant with contents (`Type.Tensor(…)`), and a `Literal` of the other variants.
A module has the ops of a family, and the types that only they use. The module `program` has the types of a `Program`,
and the module `types` has all others. Everything is sorted by name, so that generating the files again resolves a merge
conflict.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from compiler import _runtime

__all__ = ["FormatterFailed", "files", "main", "python_sources", "write"]

Schema = dict[str, Any]

_SCALARS = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
_GENERATED = "GENERATED from Rust by `make generate`: do not edit."
_PACKAGE = '''"""The types of a plan, as Python writes them. {generated}

A module is imported when one of its types is used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
{imports}
else:  # otherwise any misspelled name would have a type
    _NAMES = {{
{names}
    }}
    _MODULES = {{name: module for module, names in _NAMES.items() for name in names.split()}}

    def __getattr__(name):
        """Import the module of a type, or say how an op that this package lacks comes into it."""
        if name not in _MODULES:
            advice = "write `impl Operator for …` in a file of runtime/plan/src/ops, then run `make generate`"
            raise AttributeError(f"the plan has no op or type {{name}}: {{advice}}")
        found = globals()[name] = getattr(import_module(f"{{__name__}}.{{_MODULES[name]}}"), name)
        return found
'''


class FormatterFailed(Exception):
    """The formatter is missing, or refuses the source. The text gives advice."""


def main() -> None:
    """Writes the files that differ from the Rust source; writes none if one fails."""
    try:
        made = files()
    except FormatterFailed as error:
        sys.exit(str(error))
    write(made)


def files() -> dict[Path, str]:
    """The paths and contents of the files, from the Rust source.

    Raises:
        FormatterFailed: the Python source cannot be formatted.
    """
    package = Path(__file__).parent
    schema = _runtime.schema().strip() + "\n"
    sources = python_sources(json.loads(schema))
    return {
        package.parents[1] / "runtime/plan/plan.schema.json": schema,
        **{package / "ops" / name: text for name, text in sources.items()},
    }


def write(made: dict[Path, str]) -> list[Path]:
    """Writes the files whose contents differ. Returns their paths."""
    changed = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    return changed


def python_sources(schema: Schema) -> dict[str, str]:
    """The Python modules for a schema, by the names of their files, formatted by ruff.

    Raises:
        FormatterFailed: ruff is not installed, or cannot format a source.
    """
    definitions: dict[str, Schema] = {**schema["$defs"], schema["title"]: schema}
    families = {op: family for family, op, _ in json.loads(_runtime.ops())}
    modules: dict[str, list[str]] = {}
    for name, module in sorted(_modules(definitions, families).items()):
        modules.setdefault(module, []).append(name)
    blocks = {
        module: [_definition(name, definitions[name], name in families) for name in names]
        for module, names in sorted(modules.items())
    }
    homes = {name: module for module, texts in blocks.items() for text in texts for name in _defined(text)}
    sources = {f"{module}.py": _module(module, "\n\n\n".join(texts), homes) for module, texts in blocks.items()}
    return _formatted({"__init__.py": _package(homes), **sources})


def _modules(definitions: dict[str, Schema], families: dict[str, str]) -> dict[str, str]:
    """The module of each definition."""
    users: dict[str, set[str]] = {name: set() for name in definitions}
    for op, family in families.items():
        for name in _reached([op], definitions):
            users[name].add(family)
    program = _reached(["Program"], definitions)
    shared = _reached([name for name, known in users.items() if len(known) != 1 and name != "Op"], definitions)
    keywords = {family: f"{family}_" if keyword.iskeyword(family) else family for family in families.values()}
    return {
        name: "program" if name in program else "types" if name in shared else keywords[min(known)]
        for name, known in users.items()
        if name in shared or known
    }


def _reached(names: list[str], definitions: dict[str, Schema]) -> set[str]:
    """The definitions with these names, and those that their fields have, except for ops."""
    reached: set[str] = set()
    while names:
        name = names.pop()
        if name != "Op" and name not in reached:
            reached.add(name)
            text = json.dumps({key: value for key, value in definitions[name].items() if key != "$defs"})
            names += re.findall(r'"#/\$defs/(\w+)"', text)
    return reached


def _defined(text: str) -> list[str]:
    """The names that the source of a definition defines."""
    body = ast.parse(text).body
    targets = [each.name if isinstance(each, ast.ClassDef) else getattr(each, "target", None) for each in body]
    return [each.id if isinstance(each, ast.Name) else each for each in targets if isinstance(each, ast.Name | str)]


def _module(module: str, body: str, homes: dict[str, str]) -> str:
    """The source of a module whose definitions are `body`. `homes` has the module of each name."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = [f'"""Types of a plan. {_GENERATED}"""', "", "from __future__ import annotations", ""]
    for package, names in (
        ("typing", {"Literal", "TypeAlias"}),
        ("compiler.plan.encode", {"Op", "Struct", "Variant"}),
    ):
        if wanted := sorted(names & used):
            lines += [f"from {package} import {', '.join(wanted)}", ""]
    if others := sorted(name for name in used if homes.get(name, module) != module):
        imports = [f"    from compiler.plan.ops.{homes[name]} import {name}" for name in others]
        lines += ["TYPE_CHECKING = False", "if TYPE_CHECKING:", *imports, ""]
    return "\n".join([*lines, "", body])


def _package(homes: dict[str, str]) -> str:
    """The source of the package, which finds a type by its name."""
    modules: dict[str, list[str]] = {}
    for name, module in homes.items():
        modules.setdefault(module, []).append(name)
    imports = [
        f"    from compiler.plan.ops.{module} import {', '.join(f'{name} as {name}' for name in names)}"
        for module, names in modules.items()
    ]
    table = []
    for module, names in modules.items():
        lines = json.dumps(textwrap.wrap(" ".join(names), 90)).strip("[]").replace('", "', ' " "')
        table.append(f'        "{module}": ({lines}),' if '" "' in lines else f'        "{module}": {lines},')
    return _PACKAGE.format(generated=_GENERATED, imports="\n".join(imports), names="\n".join(table))


def _formatted(sources: dict[str, str]) -> dict[str, str]:
    """The sources as ruff formats them."""
    if importlib.util.find_spec("ruff") is None:
        raise FormatterFailed("ruff, which formats the files, is not installed: `make generate` installs it")
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources.items():
            Path(folder, name).write_bytes(source.encode())
        options = ["--isolated", "--line-length", "120", "--target-version", "py310"]
        ruff = subprocess.run(
            [sys.executable, "-m", "ruff", "format", *options, folder], capture_output=True, text=True, check=False
        )
        if ruff.returncode:
            raise FormatterFailed(f"ruff cannot format the source that the schema gives: {ruff.stderr.strip()}")
        return {name: Path(folder, name).read_bytes().decode() for name in sources}


def _definition(name: str, definition: Schema, is_op: bool) -> str:
    if _is_struct(definition):
        return _struct(name, definition, "Op" if is_op else "Struct")
    variants = definition.get("oneOf") or definition.get("anyOf")
    if variants is None or all("const" in v or "enum" in v or v.get("type") in _SCALARS for v in variants):
        return _alias(name, _annotation(definition), definition)
    return _variants(name, definition, variants)


def _is_struct(definition: Schema) -> bool:
    return definition.get("type") == "object" and "oneOf" not in definition


def _alias(name: str, annotation: str, definition: Schema) -> str:
    return f"{name}: TypeAlias = {annotation}\n{_doc(definition)}"


def _struct(name: str, definition: Schema, base: str) -> str:
    lines = [f"class {name}({base}):", textwrap.indent(_doc(definition), "    ")]
    required = definition.get("required", [])
    fields = definition.get("properties", {})
    for field in sorted(fields, key=lambda field: (_is_optional(fields[field], field in required), field)):
        optional = _is_optional(fields[field], field in required)
        safe = f"{field}_" if keyword.iskeyword(field) else field
        annotation = _annotation(fields[field])
        lines += ["", f"    {safe}: {annotation}{' = None' if optional else ''}"]
        if "description" in fields[field]:
            lines.append(textwrap.indent(_doc(fields[field]), "    "))
    return "\n".join(lines)


def _is_optional(schema: Schema, required: bool) -> bool:
    return not required and "None" in _annotation(schema).split(" | ")


def _variants(name: str, definition: Schema, variants: list[Schema]) -> str:
    units = [unit for variant in variants for unit in variant.get("enum", [variant.get("const")]) if unit is not None]
    tagged = {tag: variant for variant in variants for tag in variant.get("properties", {})}
    classes = [
        textwrap.indent(_content(tag, variant["properties"][tag], variant), "    ") for tag, variant in tagged.items()
    ]
    literal = [f"Literal[{', '.join(map(json.dumps, units))}]"] if units else []
    union = " | ".join([*(f"{name}.{tag}" for tag in tagged), *literal])
    head = f"class {name}:\n{textwrap.indent(_doc(definition), '    ')}"
    return "\n\n".join([head, *classes]) + f'\n\n\nAny{name}: TypeAlias = {union}\n"""Any `{name}`."""'


def _content(tag: str, content: Schema, variant: Schema) -> str:
    if "prefixItems" in content:
        items = list(zip(("first", "second", "third", "fourth"), content["prefixItems"], strict=False))
    elif content.get("type") == "object":
        items = list(content.get("properties", {}).items())
    else:
        items = [("value", content)]
    lines = [f"class {tag}(Variant):", textwrap.indent(_doc(variant), "    "), ""]
    lines += [f"    {field}: {_annotation(schema)}" for field, schema in items]
    return "\n".join(lines)


def _annotation(schema: Schema) -> str:
    if "$ref" in schema:
        return _reference(schema["$ref"].rsplit("/", 1)[-1])
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        literals = [item for part in alternatives for item in part.get("enum", [part.get("const")]) if item is not None]
        others = [_annotation(part) for part in alternatives if "enum" not in part and "const" not in part]
        return " | ".join([*([f"Literal[{', '.join(map(json.dumps, literals))}]"] if literals else []), *others])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(_plain(kind, schema) for kind in kinds)


def _reference(name: str) -> str:
    if name == "Op":
        return name
    definition = _definitions()[name]
    tagged = not _is_struct(definition) and any("properties" in variant for variant in definition.get("oneOf", []))
    return f"Any{name}" if tagged else name


@functools.cache
def _definitions() -> dict[str, Schema]:
    definitions: dict[str, Schema] = json.loads(_runtime.schema())["$defs"]
    return definitions


def _plain(kind: str, schema: Schema) -> str:
    if kind == "null":
        return "None"
    if kind == "array" and "prefixItems" in schema:
        return f"tuple[{', '.join(map(_annotation, schema['prefixItems']))}]"
    if kind == "array":
        return f"list[{_annotation(schema['items'])}]"
    if kind == "object":
        return f"dict[str, {_annotation(schema['additionalProperties'])}]"
    return _SCALARS[kind]


def _doc(schema: Schema) -> str:
    text = " ".join(schema.get("description", "Its attributes.").split("\n\n")[0].split())
    text = text.replace("\\", "\\\\")
    quoted = f'"""{text}"""'
    if len(quoted) <= 112:
        return quoted
    lines = textwrap.wrap(text, 108, break_long_words=False, break_on_hyphens=False)  # a URL stays in one piece
    return '"""' + "\n".join(lines) + '\n"""'


if __name__ == "__main__":
    main()
