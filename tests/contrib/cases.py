"""Cases of onnxruntime's own operators, and the comparison of a case with onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import compiler
from compiler.accuracy.reference import Reference
from tests.lower.conftest import assert_same, tensor_of, with_output_types

Array = np.ndarray[Any, Any]
MICROSOFT = "com.microsoft"
FLOAT = {"rtol": 1e-5, "atol": 1e-5}
"""The tolerances of float32."""
HALF = {"rtol": 2e-3, "atol": 2e-3}
"""The tolerances of float16: onnxruntime rounds other intermediate values."""


@dataclass
class Case:
    """A node with its inputs.

    `dims` holds, for each run-time input, names of dimensions, such as `B S _`; `_` keeps the size. `constants` are the
    indices of initializers. `expected` replaces onnxruntime's outputs. `outputs` may hold the index of each output.
    """

    op_type: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: Sequence[bool] = (True,)
    dims: dict[int, str] = field(default_factory=dict)
    constants: Sequence[int] = ()
    domain: str = MICROSOFT
    expected: Sequence[Array] | None = None
    rtol: float = 1e-5
    atol: float = 1e-5
    opset: int = 20

    def model(self, *, symbolic: bool = False) -> onnx.ModelProto:
        """The model of the node, with names for dimensions if asked."""
        names = ["" if array is None else f"x{i}" for i, array in enumerate(self.inputs)]
        results = [f"y{i}" if there else "" for i, there in enumerate(self.outputs)]
        node = helper.make_node(self.op_type, names, results, name="node", domain=self.domain, **self.attributes)
        given = [(i, array) for i, array in enumerate(self.inputs) if array is not None]
        inputs = [
            helper.make_tensor_value_info(f"x{i}", tensor_of(array, "").data_type, self.shape(i, array, symbolic))
            for i, array in given
            if i not in self.constants
        ]
        weights = [tensor_of(array, f"x{i}") for i, array in given if i in self.constants]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results if name]
        graph = helper.make_graph([node], "test", inputs, outputs, weights)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset < 23 else 12)

    def shape(self, index: int, array: Array, symbolic: bool) -> list[int | str]:
        names = self.dims.get(index, "").split() if symbolic else []
        return (
            [size if name == "_" else name for size, name in zip(array.shape, names, strict=True)]
            if names
            else [*array.shape]
        )

    @property
    def feeds(self) -> dict[str, Array]:
        given = enumerate(self.inputs)
        return {f"x{i}": array for i, array in given if array is not None and i not in self.constants}


def case(op_type: str, *inputs: Array | None, name: str, **options: Any) -> Any:
    """A named parameter of `check`. Options that are no fields of `Case` are attributes of the node."""
    fields = {key: options.pop(key) for key in list(options) if key in Case.__dataclass_fields__}
    return pytest.param(Case(op_type, inputs, options, **fields), id=f"{op_type} {name}")


def check(case: Case) -> None:
    """Compares the node's outputs with onnxruntime's, for static and symbolic shapes, optimized and not."""
    feeds = case.feeds
    wanted = case.expected
    if wanted is None:
        wanted = list(Reference(with_types(case), optimize=False).run(feeds).values())
    for label, model in models(case):
        for optimize in (True, False):
            plan = compiler.compile(with_output_types(model, wanted), compiler.Options(optimize=optimize))
            found = list(compiler.load(plan, threads=1).run(feeds).values())
            assert len(found) == len(wanted)
            for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
                place = f"{case.op_type} output {index}, {label}, optimize={optimize}"
                assert_same(one, other, case.rtol, case.atol, place)


def models(case: Case) -> Iterator[tuple[str, onnx.ModelProto]]:
    yield "static", case.model()
    if case.dims:
        yield "symbolic", case.model(symbolic=True)


def with_types(case: Case) -> onnx.ModelProto:
    """The model with a type for the output `qk`, which onnxruntime cannot infer."""
    model = case.model()
    for output in model.graph.output:
        if case.op_type in ("DecoderMaskedMultiHeadAttention", "MultiHeadAttention") and output.name == "y3":
            output.type.tensor_type.elem_type = TensorProto.FLOAT
    return model


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int64, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)
