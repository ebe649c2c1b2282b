"""Writes `plan.schema.json` and `compiler/plan/ops.py` from the Rust types of a plan.

`make generate`, or `python -m compiler.plan.generate` alone, runs it.

A struct becomes a class with its fields. An enum without contents becomes a `Literal`. An enum with contents becomes a
class that contains a class for each variant with contents (`Type.Tensor(…)`), and a `Literal` of the other variants.
Everything is sorted by name, so that generating the file again resolves a merge conflict.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import keyword
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from compiler import _runtime

__all__ = ["FormatterFailed", "files", "main", "python_source", "write"]

Schema = dict[str, Any]

_SCALARS = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
_HEADER = '''"""The types of a plan, as Python writes them. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Struct, Variant

TYPE_CHECKING = False
if not TYPE_CHECKING:  # otherwise any misspelled name would have a type

    def __getattr__(name):
        """Say how an op that this file lacks comes into it."""
        advice = "write `impl Operator for …` in a file of runtime/plan/src/ops, then run `make generate`"
        raise AttributeError(f"the plan has no op or type {name}: {advice}")
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
    return {
        package.parents[1] / "runtime/plan/plan.schema.json": schema,
        package / "ops.py": python_source(json.loads(schema)),
    }


def write(made: dict[Path, str]) -> list[Path]:
    """Writes the files whose contents differ. Returns their paths."""
    changed = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.write_text(made[path], encoding="utf-8")
    return changed


def python_source(schema: Schema) -> str:
    """The Python module for a schema, formatted by ruff.

    Raises:
        FormatterFailed: ruff is not installed, or cannot format the source.
    """
    definitions: dict[str, Schema] = {**schema["$defs"], schema["title"]: schema}
    ops = {next(iter(variant["properties"])) for variant in definitions["Op"]["oneOf"]}
    chosen = sorted(set(definitions) - {"Op"})
    blocks = [_definition(name, definitions[name], name in ops) for name in chosen]
    return _formatted("\n\n\n".join([_HEADER, *blocks]))


def _formatted(source: str) -> str:
    if importlib.util.find_spec("ruff") is None:
        raise FormatterFailed("ruff, which formats the file, is not installed: `make generate` installs it")
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "-"], input=source, capture_output=True, text=True, check=False
    )
    if ruff.returncode:
        raise FormatterFailed(f"ruff cannot format the source that the schema gives: {ruff.stderr.strip()}")
    return ruff.stdout


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
