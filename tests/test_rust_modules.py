"""The modules of the runtime's crates: the layer of each, and no circular imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from tests.sources import files

ROOT = Path(__file__).parent.parent

PLAN = [
    {"array", "dtype", "error", "extent", "form", "ids", "interrupt", "pattern", "size", "types", "value", "work"},
    {"layout", "operator", "text"},
    {"axes", "broadcast", "epilogue", "movable", "stack"},
    {"ops"},
    {"kernel"},
    {"expected", "memory", "operands"},
    {"plan", "infer"},
    {"checksum", "custom", "newer", "read", "verify"},
    {"cpu", "device", "gpu", "weights"},
    {"candle_device"},
    {"prepare"},
    {"executable", "growing"},
    {"dry_run", "execute", "gpu_run", "inputs", "inspect", "observe", "profile", "request", "slots"},
    {"session", "shared"},
    {"candle_storages", "candle_tensors", "constants", "lend", "mapped", "state"},
    {"builder", "tensors"},
    {"internal"},
]
"""The layers of the crate `candle-plan`. A module uses only modules of its own layer and of earlier layers."""

KERNELS = [
    {
        "alternative",
        "form",
        "isa",
        "prefetch",
        "recent_values",
    },
    {"blocking", "lane_loops", "quantize", "transpose", "vector"},
    {"padded_row", "scratch", "threads"},
    {"cast", "distance", "gemm", "peaks", "program", "reduce", "rewrite", "strided", "topk", "trees"},
    {"concat", "elementwise", "float_types", "gather_scatter", "int8", "lowbit", "pad", "rounded"},
    {"products"},
    {"norm", "pool", "recurrent", "resize", "sample", "softmax"},
    {"attention", "convolution"},
]
"""Every top-level module of the crate `candle-plan-kernels`, in the same order."""

MEMORY = [{"allocator", "machine", "mapping"}, {"buffer"}, {"uninit"}]
"""Every top-level module of the crate `candle-plan-memory`, in the same order."""

DESCRIPTORS = [
    {
        "attention",
        "broadcast",
        "cast",
        "conv",
        "gemm",
        "minifloat",
        "number",
        "pool",
        "program",
        "recurrent",
        "reduce",
        "sample",
        "strided",
        "word",
    },
]
"""Every top-level module of the crate `candle-plan-descriptors`: none uses another."""

DEVICE = [
    {"error", "launch", "memory", "mirror"},
    {"faults", "gemm"},
    {"command"},
    {"backend"},
    {"dry_run"},
    {"gpu"},
    {"backends", "buffer", "turn"},
]
"""Every top-level module of the crate `candle-plan-device`, in the same order."""

CUDA = [
    {"failure", "images"},
    {"library"},
    {"driver"},
    {"cache", "cublas", "errors"},
    {"checks", "multiply", "pool"},
    {"modules"},
    {"context"},
    {"stream"},
    {"blas", "staging"},
]
"""Every top-level module of the crate `candle-plan-device-cuda`, in the same order."""

DERIVE = [{"compare"}, {"kernel", "structure"}, {"expand"}]
"""Every top-level module of the crate `candle-plan-derive`, in the same order."""

PYTHON = [
    {"errors", "files", "memory"},
    {"arrays", "dlpack"},
    {"device_arrays", "functions"},
    {"outputs", "weights"},
    {"custom"},
    {"session"},
    {"state"},
]
"""Every top-level module of the crate `candle-plan-python`, in the same order."""

SERVER = [{"batch", "numbers", "options"}, {"json", "queue"}, {"http", "worker"}]
"""Every top-level module of the crate `candle-plan-server`, in the same order."""

LAYERS = {
    "runtime/plan": PLAN,
    "runtime/kernels": KERNELS,
    "runtime/memory": MEMORY,
    "runtime/descriptors": DESCRIPTORS,
    "runtime/device": DEVICE,
    "runtime/device/cuda": CUDA,
    "runtime/device/emulator": [],
    "runtime/derive": DERIVE,
    "runtime/python": PYTHON,
    "runtime/server": SERVER,
    "runtime": [],
    "runtime/cuda": [],
    "runtime/emulator": [],
    "benchmarks/gemm": [],
    "examples/embedding": [],
    "tests/standin/candle": [{"standin"}, {"runs"}, {"example", "layers"}, {"scenarios"}],
    "tests/standin/candle/kernels": [],
}
"""Every crate, and the layers of its modules."""

APART = [("cpu", "gpu"), ("gpu", "cpu"), ("cpu", "device")]
"""Pairs of modules of the crate `candle-plan`. The first may not use the second."""

KERNELS_CRATE = "candle_plan_kernels"

Module = tuple[str, ...]
"""The path of a module in its crate, as ("cpu", "conv"); () is the crate's root."""


INLINE = r"(?ms)^(?:pub\S* )?mod \w+ \{\n.*?^\}"
"""A module inside a file, which counts as a part of the file's module."""


def modules_of(crate: str) -> dict[Module, str]:
    """Every module of a crate but tests and what they share, with its code: without comments and tests."""
    root, modules = ROOT / crate / "src", {}
    for path in root.rglob("*.rs"):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "mod" or parts in (("lib",), ("main",)):
            parts = parts[:-1]
        if not {"tests", "testing"} & set(parts):
            code = re.sub(r"//.*|\bpub\(in [^)]*\)", "", path.read_text()).split("#[cfg(test)]\nmod tests {")[0]
            modules[parts] = re.sub(INLINE, lambda found: found[0].replace("super::", "self::"), code)
    return modules


def paths_in(code: str, *starts: str) -> Iterator[list[str]]:
    """Every path that a module's code names: those of `use` items, and others that begin with one of these names."""
    for tree in re.findall(r"\buse ([^;]+);", code):
        yield from use_paths(re.sub(r"\s+", " ", tree))
    first = "|".join(starts)
    for path in re.findall(rf"(?<![\w:.])(?:{first})(?:::\w+)+", re.sub(r"\buse [^;]+;", "", code)) if starts else ():
        yield path.split("::")


def use_paths(tree: str, prefix: str = "") -> Iterator[list[str]]:
    """`a::{b, c::d as e}` as `a::b` and `a::c::d`."""
    if "{" not in tree:
        yield (prefix + tree).split(" as ")[0].strip().split("::")
        return
    start, end = tree.index("{"), tree.rindex("}")
    depth, part = 0, ""
    for char in tree[start + 1 : end] + ",":
        if char == "," and depth == 0:
            if part.strip():
                yield from use_paths(part.strip(), prefix + tree[:start])
            part = ""
        else:
            depth += (char == "{") - (char == "}")
            part += char


def exported(code: str) -> Iterator[tuple[str, list[str]]]:
    """The names that a module re-exports, with their paths; `*` for all names of a module."""
    for tree in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", code):
        for path in use_paths(re.sub(r"\s+", " ", tree)):
            yield path[-1], path


ITEM = r"\b(?:const|enum|fn|static|struct|trait|type)"
"""The beginning of an item's definition."""


class Names:
    """The paths of a crate's modules, resolved."""

    def __init__(self, modules: dict[Module, str]) -> None:
        self.modules = modules
        self.exports = {module: list(exported(code)) for module, code in modules.items()}

    def absolute(self, module: Module, path: list[str]) -> list[str] | None:
        """A path from the crate's root; `None` if it leaves the crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            up = [*module]
            while path and path[0] in ("self", "super"):
                up = up[:-1] if path[0] == "super" else up
                path = path[1:]
            return up + path
        return [*module, *path] if (*module, path[0]) in self.modules else None

    def defining(self, module: Module, path: list[str]) -> Module | None:
        """The module that a path names, or the module that defines the item at the path, behind re-exports; `None` if
        another crate defines it."""
        named = self.absolute(module, path)
        if named is None:
            return None
        found = next(tuple(named[:n]) for n in range(len(named), -1, -1) if tuple(named[:n]) in self.modules)
        for name, behind in self.exports[found] if len(named) > len(found) else []:
            item = named[len(found)]
            if name in (item, "*") and behind != path:
                defined = self.defining(found, [*behind[:-1], item])
                if defined is None and name == item:
                    return None
                if defined is not None and (name == item or re.search(rf"{ITEM} {item}\b", self.modules[defined])):
                    return defined
        return found


def uses(crate: str) -> set[tuple[Module, Module]]:
    """Pairs of modules of a crate: the first module uses the second."""
    names = Names(modules_of(crate))
    inside = {
        module: [other[-1] for other in names.modules if other and other[:-1] == module] for module in names.modules
    }
    found = {
        (module, names.defining(module, path))
        for module, code in names.modules.items()
        for path in paths_in(code, "crate", "self", "super", *inside[module])
    }
    return {(module, other) for module, other in found if other and other != module}


def test_paths_are_found() -> None:
    code = "use a::{self, b::{c, d as e}};\nuse crate::f;\nfn g() { super::h::i(); }"
    found = [["a", "self"], ["a", "b", "c"], ["a", "b", "d"], ["crate", "f"], ["super", "h", "i"]]
    assert sorted(paths_in(code, "super")) == sorted(found)


def test_items_are_found_behind_re_exports() -> None:
    names = Names(
        {
            (): "",
            ("a",): "pub use b::{C, d};\npub use std::J;\npub(crate) use e::*;",
            ("a", "b"): "",
            ("a", "e"): "struct F",
        }
    )
    paths = [
        ["crate", "a", "C"],
        ["super", "a", "d", "G"],
        ["crate", "a", "F"],
        ["crate", "a", "H"],
        ["std", "C"],
        ["super", "a", "J"],
    ]
    found = [names.defining(("i",), path) for path in paths]
    assert found == [("a", "b"), ("a", "b"), ("a", "e"), ("a",), None, None]


def test_every_crate_is_listed() -> None:
    manifests = (path for path in files(ROOT) if path.name == "Cargo.toml")
    assert sorted(LAYERS) == sorted(path.parent.relative_to(ROOT).as_posix() for path in manifests)


@pytest.mark.parametrize("crate", LAYERS)
def test_every_module_is_in_one_layer(crate: str) -> None:
    listed = [module for layer in LAYERS[crate] for module in layer]
    assert sorted(listed) == sorted({module[0] for module in modules_of(crate) if module})


@pytest.mark.parametrize("crate", LAYERS)
def test_modules_use_those_before_them(crate: str) -> None:
    layer = {module: at for at, modules in enumerate(LAYERS[crate]) for module in modules}
    pairs = {(one[0], other[0]) for one, other in uses(crate) if one and other}
    assert not {(one, other) for one, other in pairs if layer[one] < layer[other]}


def test_modules_apart_do_not_use_each_other() -> None:
    assert not {(one[0], other[0]) for one, other in uses("runtime/plan") if one and other} & set(APART)


def chains(start: str, used: set[tuple[Module, Module]]) -> dict[Module, list[str]]:
    """Every module that those inside a top-level module use, also through others, with a shortest chain to it. The root
    of the crate, which names the public items, stands for the beginning instead."""
    graph = networkx.DiGraph(pair for pair in used if pair[0])
    graph.add_edges_from(((), module) for module in {*graph} if module[:1] == (start,))
    found = networkx.single_source_shortest_path(graph, ())
    return {module: ["::".join(link) for link in chain[1:]] for module, chain in found.items() if module}


def test_chains_of_uses_are_found() -> None:
    used: set[tuple[Module, Module]] = {(("a", "b"), ("c",)), (("c",), ("d", "e")), (("f",), ("a", "b"))}
    assert chains("a", used) == {("a", "b"): ["a::b"], ("c",): ["a::b", "c"], ("d", "e"): ["a::b", "c", "d::e"]}


def test_operators_do_not_use_kernels_through_other_modules() -> None:
    """Operators and the values that they read know the memory of the host, and the kernels of no device."""
    modules = modules_of("runtime/plan")
    kernels = {
        module for module, code in modules.items() if module[:1] in {("cpu",), ("gpu",)} or KERNELS_CRATE in code
    }
    found = chains("ops", uses("runtime/plan"))
    assert ("value",) in found and ("cpu", "convert") in kernels
    assert [" uses ".join(chain) for module, chain in found.items() if module in kernels] == []


@pytest.mark.parametrize("crate", ["runtime/memory", "runtime/descriptors"])
def test_memory_and_descriptors_depend_on_no_crate_of_the_project(crate: str) -> None:
    assert "candle" not in (ROOT / crate / "Cargo.toml").read_text().split("[dependencies]")[1]


@pytest.mark.parametrize("module", ["ops", "operands", "gpu"])
def test_operators_and_gpu_kernels_do_not_name_the_crate_of_cpu_kernels(module: str) -> None:
    """Their tests do not either."""
    sources = sorted((ROOT / "runtime/plan/src" / module).rglob("*.rs"))
    assert sources
    assert not [path.relative_to(ROOT).as_posix() for path in sources if KERNELS_CRATE in path.read_text()]


@pytest.mark.parametrize("crate", LAYERS)
def test_no_modules_use_each_other_in_a_circle(crate: str) -> None:
    """Among all modules of a crate: a module and those inside it count separately."""
    graph = networkx.DiGraph(("::".join(one), "::".join(other)) for one, other in uses(crate))
    assert not [circle for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
