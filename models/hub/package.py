"""The graphs of an architecture: with seeded weights, and with inputs for onnxruntime and the plan."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from models.hub.sizes import configured

__all__ = ["PROMPT", "PROVIDERS", "STEP", "WEIGHTS", "exact", "inputs", "package"]

PROVIDERS = ("default", "cpu")
WEIGHTS: dict[str, dict[str, Any]] = {"f32": {}, "f16": {"is_half": True}, "int4": {"bits": 4}}
"""The kinds of weights, and the arguments of `configured`."""
PROMPT, STEP = {"batch": 1, "new": 5, "past": 0}, {"batch": 2, "new": 1, "past": 4}
"""The sizes of the inputs: a prompt without a past, and one more token after four, for two rows.

The masks of some encoders of mobius-onnx broadcast only for one row.
"""
SAMPLES = {"audio_seq_len": 16}
"""The sizes of dimensions that other sizes determine."""
OTHER = 8
"""The size of any other dimension."""
TOKENS = 90
"""All tokens are below this number."""


def package(kind: str, provider: str, weights: str) -> dict[str, ir.Model]:
    """The models of an architecture, such as a decoder, an encoder of images and an embedding, by name.

    Raises:
        Exception: mobius-onnx cannot build the architecture in tiny sizes; many types occur.
    """
    import mobius

    network, config, task = configured(kind, **WEIGHTS[weights])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = mobius.build_from_module(network, config, task, execution_provider=provider)
    for model in made.values():
        for name, value in model.graph.initializers.items():
            if value.const_value is None:
                value.const_value = ir.tensor(_weight(name, value), dtype=value.dtype, name=name)
    return dict(made.items())


def _weight(name: str, value: ir.Value) -> np.ndarray:
    """Seeded elements: normal numbers for matrices, numbers near 1 for norms, and codes for quantized weights."""
    if value.dtype is None or value.shape is None:
        raise ValueError(f"the weight {name} has no type")
    shape, kind = tuple(value.shape.numpy()), value.dtype.numpy()
    random = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        return random.integers(0, 256 if kind == np.uint8 else 2, shape).astype(kind)
    numbers = random.normal(size=shape)
    if name.endswith("scales") or "scale" in name.rpartition(".")[2]:
        numbers = np.abs(numbers) / 50 + 0.01
    elif len(shape) < 2:
        numbers = numbers / 10 + (1 if name.endswith("weight") else 0)
    else:
        numbers = numbers / math.sqrt(math.prod(shape[1:]))
    return numbers.astype(kind)


def exact(model: ir.Model) -> ir.Model:
    """The model with exact products of quantized weights.

    mobius-onnx asks for `accuracy_level` 4 for the provider of the CPU. onnxruntime then rounds the other operand to 8
    bits, which changes its results by percents.
    """
    nodes = [*model.graph.all_nodes(), *(node for function in model.functions.values() for node in function)]
    for node in nodes:
        if "accuracy_level" in node.attributes:
            node.attributes["accuracy_level"] = ir.AttrInt64("accuracy_level", 1)
    return model


def inputs(model: ir.Model, sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Inputs of a model for these sizes."""
    random = np.random.default_rng(seed)
    return {value.name or "": _input(value, sizes, random) for value in model.graph.inputs}


def _input(value: ir.Value, sizes: Mapping[str, int], random: np.random.Generator) -> np.ndarray:
    if value.dtype is None or value.shape is None:
        raise ValueError(f"the input {value.name} has no type")
    name, kind = value.name or "", value.dtype.numpy()
    shape = tuple(size if isinstance(size, int) else _size(str(size.value or ""), sizes) for size in value.shape)
    if "mask" in name:
        return np.ones(shape, kind)
    if "position" in name:
        return (sizes["past"] + np.broadcast_to(np.arange(shape[-1]), shape)).astype(kind)
    if kind.kind in "iub" and "type" in name:
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind in "iub":
        return random.integers(0, 2 if kind.kind == "b" else TOKENS, shape).astype(kind)
    return random.normal(size=shape).astype(kind)


def _size(text: str, sizes: Mapping[str, int]) -> int:
    """The size of a dimension, by its name or by a sum of names."""
    if "+" in text:
        return sum(_size(part, sizes) for part in text.split("+"))
    word = text.strip()
    if word in SAMPLES:
        return SAMPLES[word]
    if re.fullmatch(r"\d+", word):
        return int(word)
    for part, size in (("past", sizes["past"]), ("total", sizes["past"] + sizes["new"]), ("batch", sizes["batch"])):
        if part in word:
            return size
    return sizes["new"] if word in ("sequence_len", "seq_len", "sequence_length") else OTHER
