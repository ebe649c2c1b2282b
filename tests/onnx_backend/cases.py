"""The backend tests of the onnx package: models with inputs and outputs, and a function that runs one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.reference.ops import op_pool_common

import compiler

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
"""Operators whose results no two implementations share: only dtype and shape are compared (values: tests/lower)."""
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


class Differs(AssertionError):
    """An output has the right dtype and shape, but wrong values. `off` is the largest difference."""

    def __init__(self, message: str, off: float) -> None:
        super().__init__(message)
        self.off = off


@functools.cache
def load_cases() -> dict[str, TestCase]:
    """Every test by name. The node tests are made in memory; the others come with the package.

    Two functions of the package would take most of the time: one reads the sources of the tests for its pages, and one
    computes each window of a pooling alone.
    """
    sources = mock.patch.object(base, "process_snippet", lambda *_: ("", ""))
    windows = mock.patch.object(op_pool_common, "pool", functools.partial(_pool, op_pool_common.pool))
    with warnings.catch_warnings(), sources, windows:
        warnings.simplefilter("ignore")
        return {case.name: case for kind in KINDS for case in load_model_tests(kind=kind)}


def _pool(
    one_by_one: Callable[..., Any], x: Any, shape: Any, kernel: Any, strides: Any, *rest: Any, **more: Any
) -> Any:
    """The package's pooling. The windows of one without steps and padding are computed together."""
    out, kind, *padding = rest
    if padding or more.keys() - {"p"} or {*strides} != {1} or x.shape != tuple(shape):
        return one_by_one(x, shape, kernel, strides, *rest, **more)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, range(2, x.ndim)).reshape(*shape[:2], *out, -1)
    if kind == "LPPOOL":
        return (np.abs(windows) ** more["p"]).sum(-1) ** (1.0 / more["p"])
    return {"AVG": np.mean, "MAX": np.max}[kind](windows, axis=-1)


def run_case(case: TestCase, options: compiler.Options | None = None) -> None:
    """Compiles the test's model with these options, runs it on every data set and compares.

    Raises:
        AssertionError: an output differs in dtype or shape.
        Differs: one differs in value; the one that differs most.
        CompileError, InputError, RunError: as of the product.
    """
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    session = compiler.load(compiler.compile(model, options), threads=1)
    is_random = any(node.op_type in RANDOM for node in model.graph.node) or _drops(case.name)
    wrong: list[Differs] = []
    for inputs, expected in data_sets(case, model):
        names = [info.name for info in session.inputs]
        outputs = session.run(dict(zip(names, inputs, strict=True)))
        for found, wanted in zip(outputs.values(), expected, strict=True):
            if is_random:
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
                continue
            try:
                assert_same(found, wanted, case.rtol, case.atol)
            except Differs as error:
                wrong.append(error)
    if wrong:
        raise max(wrong, key=lambda error: error.off)


def _drops(name: str) -> bool:
    """Whether the test of this name drops elements at random."""
    return name.startswith("test_training_dropout") and "zero_ratio" not in name


def data_sets(case: TestCase, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and expected outputs of each run, in the model's order."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield _plain(inputs, model.graph.input), _plain(outputs, model.graph.output)
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield _read(folder, "input", model.graph.input), _read(folder, "output", model.graph.output)


def _plain(values: Sequence[Any], infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    """Values of a data set in memory as arrays, lists and None."""
    return [_value(value, info.type) for value, info in zip(values, infos, strict=True)]


def _read(folder: Path, kind: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    files = [folder / f"{kind}_{index}.pb" for index in range(len(infos))]
    values = [onnx.TensorProto.FromString(file.read_bytes()) for file in files if file.exists()]
    return [numpy_helper.to_array(value) for value in values]


def _value(value: Any, kind: onnx.TypeProto) -> Any:
    if value is None:
        return None
    if kind.HasField("optional_type"):
        return _value(value, kind.optional_type.elem_type)
    if kind.HasField("sequence_type"):
        return [_value(item, kind.sequence_type.elem_type) for item in value]
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def assert_same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Same dtype, shape and values within the tolerance; sequences item by item."""
    if wanted is None or isinstance(wanted, list):
        assert type(found) is type(wanted), f"{found!r} is not {wanted!r}"
        for item, expected in zip(found or [], wanted or [], strict=True):
            assert_same(item, expected, rtol, atol)
        return
    assert found.shape == wanted.shape, f"shape {found.shape} is not {wanted.shape}"
    if wanted.dtype.kind in "OSU":
        assert found.astype(str).tolist() == wanted.astype(str).tolist()
        return
    assert found.dtype == wanted.dtype, f"dtype {found.dtype} is not {wanted.dtype}"
    if _is_exact(wanted.dtype):
        np.testing.assert_array_equal(found, wanted)
        return
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    try:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    except AssertionError as error:
        raise Differs(str(error), float(np.nanmax(np.abs(found - wanted)))) from None


def _is_exact(dtype: np.dtype) -> bool:
    floats = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn)
    small = (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu)
    return not (dtype.kind == "f" or dtype in [np.dtype(kind) for kind in (*floats, *small)])
