"""Models with constant weights, and their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

import compiler

Array = np.ndarray[Any, Any]


def model_of(text: str, **weights: Array) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def inputs_of(plan: compiler.Plan) -> dict[str, Array]:
    given = {}
    for each in compiler.load(plan).inputs:
        shape = [5 if not isinstance(size, int) else size for size in each.shape or ()]
        given[each.name] = (
            normal(*shape, seed=1) if each.dtype == "float32" else np.arange(np.prod(shape)).reshape(shape)
        )
    return given
