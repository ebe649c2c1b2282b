"""A run that decodes a token through a state allocates no memory that grows with the caches.

The allocator counts blocks of 16 KiB or more. The scores of a head, one number for each token, take less. Only vectors
of the mask of GPT-2 take more, with one number for each token.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import Options, _runtime
from tests.state.models import merged_decoder

HEADS, SIZE = 4, 64
CONTEXTS = (64, 512, 2048)
"""The numbers of tokens in the caches. At the smallest, the cache of a layer already counts as a large block."""
RUNS = 4

CACHE = """<ir_version: 11, opset_import: ["": 23]> m
    (float[1, 4, n, 64] q, float[1, 4, n, 64] k, float[1, 4, n, 64] v,
     float[1, 4, past, 64] past_key, float[1, 4, past, 64] past_value)
    => (float[1, 4, n, 64] y, float[1, 4, total, 64] present_key, float[1, 4, total, 64] present_value) {
    present_key = Concat <axis = 2> (past_key, k)
    present_value = Concat <axis = 2> (past_value, v)
    y = Attention (q, present_key, present_value)
}"""
"""A layer of attention, whose caches a Concat extends."""


class Decoder(NamedTuple):
    """A plan, the names of its caches, and the inputs of a run with some tokens in the caches."""

    plan: compiler.Plan
    caches: list[str]
    inputs: Any
    vectors: int = 0
    """The number of vectors that the mask takes, with 8 bytes for each token."""


def of_text(text: str, more: Mapping[str, Any]) -> Decoder:
    drawn = np.random.default_rng(0).standard_normal((3, 1, HEADS, 1, SIZE), np.float32)
    inputs = {**dict(zip("qkv", drawn, strict=True)), **more}
    plan = compiler.compile(onnx.parser.parse_model(text), Options(state="auto"))
    return Decoder(plan, ["past_key", "past_value"], lambda _: inputs)


def gpt2(path: Path) -> Decoder:
    """GPT-2 of two layers with seeded weights."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    pytest.importorskip("transformers", reason="needs transformers")
    from tests.generation import models

    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": HEADS, "n_embd": HEADS * SIZE, "n_positions": 4096, "vocab_size": 211}
    model = models.transformers.GPT2LMHeadModel(models.transformers.GPT2Config(**sizes)).eval()
    plan = compiler.compile(models.exported(model, path), Options(state="auto"))

    def inputs(length: int) -> dict[str, Any]:
        return {"input_ids": np.array([[3]]), "attention_mask": np.ones((1, length + 1), np.int64)}

    return Decoder(plan, models.names("past_key_values"), inputs, vectors=12)


@pytest.fixture(scope="module", params=["layer", "merged", "GPT-2"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    if request.param == "GPT-2":
        return gpt2(tmp_path_factory.mktemp("gpt2") / "decoder.onnx")
    if request.param == "merged":
        chosen = {"use_cache_branch": np.array([True]), "pick": np.array([0])}
        return of_text(merged_decoder(HEADS, SIZE), chosen)
    return of_text(CACHE, {})


def allocated(decoder: Decoder, session: compiler.Session, length: int) -> int:
    """The most bytes that a run allocates in large blocks, with about so many tokens in the caches.

    The first run moves the caches, so that those after it have spare capacity.
    """
    drawn = np.random.default_rng(length).standard_normal((1, HEADS, length, SIZE), np.float32)
    state, found = session.new_state(dict.fromkeys(decoder.caches, drawn)), []
    for run in range(RUNS + 1):
        inputs, before = decoder.inputs(length + run), _runtime.allocated()
        session.run(inputs, state=state)
        found.append(_runtime.allocated() - before)
    assert state.length == length + RUNS + 1
    assert found[0] >= len(decoder.caches) * drawn.nbytes, "it moved all caches"
    return max(found[1:])


@pytest.mark.parametrize("max_memory", [None, 1 << 30])
def test_a_token_allocates_the_same_for_every_context(decoder: Decoder, max_memory: int | None) -> None:
    session = compiler.load(decoder.plan, threads=1, max_memory=max_memory)
    assert all(pair.in_place and not pair.copies for pair in session.prepared().state)
    found = {length: allocated(decoder, session, length) for length in CONTEXTS}
    most, tokens = max(found.values()) - min(found.values()), CONTEXTS[-1] + 512
    assert most <= decoder.vectors * 8 * tokens < HEADS * SIZE * 4 * CONTEXTS[-1] / 8, found
