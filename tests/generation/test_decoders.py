"""Decoders of transformers and their plans with a state write the same tokens: float32, float16, 4-bit weights."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import Options
from tests.generation.example import generate
from tests.generation.models import COUNT, FAMILIES, PROMPT, decoder_of, exported, generated, names, torch

QUANTIZED = {"Gemma", "Llama"}
"""The models whose plans with 4-bit weights are tested too."""
DISTINCT = 4
"""A text with fewer distinct tokens would say little about a decoder."""


def assert_same_text(model: Any, plan: compiler.Plan) -> None:
    expected = generated(model)
    assert len({*expected}) >= DISTINCT
    session = compiler.load(plan, threads=2)
    assert_in_place(session)
    assert list(islice(generate(session, PROMPT[0].tolist(), np.argmax), COUNT)) == expected


def assert_in_place(session: compiler.Session) -> None:
    """A run writes only the new rows of each cache, and no step reads a copy of the others."""
    pairs = session.prepared().state
    assert [pair.output for pair in pairs] == names("present")
    assert {(pair.in_place, *pair.copies) for pair in pairs} == {(True,)}


@pytest.mark.parametrize("family", FAMILIES)
def test_decoders_write_the_tokens_of_transformers(family: str, tmp_path: Path, quick_exports: None) -> None:
    model = decoder_of(family)
    path = exported(model, tmp_path / "decoder.onnx")
    plan = compiler.compile(path, Options(state="auto"))
    assert [pair.output for pair in plan.state] == names("present")
    assert [pair.input for pair in plan.state] == names("past_key_values")
    assert {pair.axis for pair in plan.state} == {2}
    assert_same_text(model, plan)
    if family in QUANTIZED:
        plan = compiler.compile(path, Options(state="auto", weights="int4"))
        assert "MatMulNBits" in {next(iter(step["op"])) for step in plan.document["main"]["steps"]}
        round_weights(model)
        assert_same_text(model, plan)


@pytest.mark.parametrize("family", ["GPT2", "Llama"])
def test_decoders_of_float16_write_the_tokens_of_transformers(family: str, tmp_path: Path, quick_exports: None) -> None:
    model = decoder_of(family, torch.float16)
    plan = compiler.compile(exported(model, tmp_path / "decoder.onnx"), Options(state="auto"))
    assert {info.dtype for info in plan.outputs} == {"float16"}
    assert_same_text(model, plan)


def round_weights(model: Any) -> None:
    """Round the weights as docs/quantized-weights.md describes: 4 bits in products, 8 bits in tables."""
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            assert part.weight.shape[1] % 32 == 0
            part.weight.data = rounded(part.weight.data.unflatten(1, (-1, 32)), -8).flatten(1)
        elif isinstance(part, torch.nn.Embedding):
            part.weight.data = rounded(part.weight.data, 127)


def rounded(blocks: Any, divisor: int) -> Any:
    """Each last axis as multiples of its number of the largest magnitude, divided by `divisor`."""
    largest = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))
    scale = largest / divisor
    bound = abs(divisor)
    return (blocks / scale).round().clamp(-bound, bound - (divisor < 0)) * scale
