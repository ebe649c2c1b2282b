"""Rows of a table of small graphs. Sizes of inputs have names. Elements are drawn, unless the row gives them.

A row may make some inputs constants of the plan, because kernels pack constant weights, and it may choose options of
the compilation, because some operators of the runtime exist only in optimized plans.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx.helper
import onnx.numpy_helper
import onnx.parser

import compiler
from compiler import Options

Feeds = dict[str, Any]
NEWEST = 28
SIZES = {"n": 1536, "m": 1536}
"""The sizes of rows without sizes: a tensor of these sizes has 9 MiB of float32."""
FAR, MOST = 2**40, 2**28
ONE, TWO = "T[n, m] x", "T[n, m] x, T[n, m] z"
IMAGE = {"c": 16, "n": 400, "m": 400}
IMAGES = "T[1, c, n, m] x"
TAPS = "T[o, c, 3, 3] w"
WIDE, DEEP = {"c": 512, "n": 6, "m": 6, "o": 512}, {"c": 16, "n": 400, "m": 400, "o": 16}
ALONE = {"c": 400_000, "n": 3, "m": 3}
PRODUCT = "T[n, k] x, T[k, m] z"
TALL, FLAT = {"n": 4, "k": 2048, "m": 2048}, {"n": 1024, "k": 2048, "m": 64}
KEEP, KEPT = "bool[1] e", "t = Compress(y, e) s = Size(t)"
"""Makes the size of a result unknown. The compiler would replace a known size with a constant."""


class Row(NamedTuple):
    """A graph whose nodes compute `y`, or `s`, the number of its elements."""

    inputs: str
    nodes: str
    given: Feeds
    """Sizes, and inputs that are not random."""
    opset: int
    constants: tuple[str, ...] = ()
    """The inputs that are constants of the plan."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of the compilation. Without `optimize`, the plan is not optimized."""

    @property
    def graph(self) -> str:
        """The text of the model. No output is large, because it would be copied for NumPy."""
        opsets = f'"" : {self.opset}, "ai.onnx.ml" : 4, "ai.onnx.preview" : 1, "com.microsoft" : 1'
        opsets += ', "ai.onnx.preview.training" : 1, "candle.plan" : 1'
        # Strings are made of numbers, because the conversion of Python's strings takes memory too.
        inputs = re.sub(r"string(\[.*?\]) (\w)", r"int64\1 \2_number", self.inputs)
        texts = "".join(f"{name} = Cast<to = 8>({name}_number) " for name in re.findall(r"(\w)_number", inputs))
        size = "" if re.search(r"\bs = ", self.nodes) else " s = Size(y)"
        return f"<ir_version: 12, opset_import: [{opsets}]> g ({inputs}) => (int64 s) {{ {texts}{self.nodes}{size} }}"

    def plan(self, feeds: Feeds, **options: Any) -> tuple[compiler.Plan, Feeds]:
        """The plan with the row's constants, and the other inputs."""
        model = with_constants(onnx.parser.parse_model(self.graph), feeds, self.constants)
        others = {name: value for name, value in feeds.items() if name not in self.constants}
        return compiler.compile(model, Options(**{"optimize": False} | dict(self.options) | options)), others

    def feeds(self, sizes: Feeds) -> Feeds:
        """The inputs of these sizes, with the constants; empty if one has more than `MOST` elements.

        An array of the row is repeated or cut to the size of the input.
        """
        infos = {info.name: info.type.tensor_type for info in onnx.parser.parse_model(self.graph).graph.input}
        sizes = SIZES | self.given | sizes
        shapes = {
            name: [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
            for name, kind in infos.items()
        }
        if any(np.prod([float(size) for size in shape]) > MOST for shape in shapes.values()):
            return {}
        return {
            name: np.resize(self.given.get(name, _drawn(kind.elem_type)), shapes[name]) for name, kind in infos.items()
        }

    def empty_feeds(self) -> Iterator[tuple[Feeds, Feeds]]:
        """Empty inputs that are long along another axis, for which a kernel may allocate a buffer."""
        names = sorted({name for dims in re.findall(r"\[(.*?)\]", self.inputs) for name in re.findall("[a-z]", dims)})
        for none, far in itertools.product(names, repeat=2):
            # A scan runs its body for each part, even if the parts are empty.
            sizes = dict.fromkeys(names, 1) | {far: 2 if "Scan<" in self.nodes else FAR} | {none: 0}
            feeds = self.feeds(sizes)
            if feeds:
                yield sizes, feeds


@functools.cache
def _drawn(kind: int) -> np.ndarray[Any, Any]:
    """Random integers from 1 to 8, which are also valid indices; floats are an eighth of them."""
    numbers = np.random.default_rng(0).integers(1, 9, 4093)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind == "b":
        return numbers % 2 == 0
    return (numbers / 8 if dtype.kind == "f" else numbers).astype(dtype)


def rows(
    types: str,
    inputs: str,
    nodes: str,
    operators: str = "",
    opset: int = NEWEST,
    constants: str = "",
    options: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> Iterator[Row]:
    """A row per element type `T` and operator `OP`. `constants` are the names of inputs."""
    names = tuple(constants.split())
    for kind, operator in itertools.product(types.split(), operators.split() or [""]):
        texts = [re.sub(r"\bT\b", kind, text) for text in (inputs, nodes.replace("OP", operator))]
        yield Row(texts[0], texts[1], given, opset, names, options)


def with_constants(model: onnx.ModelProto, feeds: Feeds, names: Collection[str]) -> onnx.ModelProto:
    """The same model, where the inputs with these names are initializers."""
    for info in [each for each in model.graph.input if each.name in names]:
        model.graph.input.remove(info)
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds[info.name], info.name))
    return model


def integers(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers)
