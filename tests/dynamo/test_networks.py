"""Small networks of torchvision and transformers."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from compiler.dynamo import FallbackWarning
from tests.dynamo.checking import FLOAT, candle, check, compiled, torch

DEEP = {"rtol": 1e-4, "atol": 1e-4}
"""The tolerance of a network with many layers in float32."""


def test_resnet() -> None:
    models = pytest.importorskip("torchvision.models", reason="needs torchvision")
    network = models.resnet18().eval()
    run = compiled(network)
    given = torch.randn(2, 3, 64, 64)
    check(run(given), network(given), DEEP)


def test_bert() -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    network = transformers.BertModel(transformers.BertConfig(vocab_size=100, **sizes)).eval()
    run = compiled(network, dynamic=True)
    for shape in [(2, 9), (3, 12)]:
        words = torch.randint(100, shape)
        mask = (torch.arange(shape[1]) < shape[1] - 2).long().expand(shape)
        found, expected = run(words, attention_mask=mask), network(words, attention_mask=mask)
        check(found.last_hidden_state, expected.last_hidden_state, FLOAT)
        check(found.pooler_output, expected.pooler_output, FLOAT)


def test_gpt2_generates() -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    configuration = transformers.GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=1, n_head=4)
    network = transformers.GPT2LMHeadModel(configuration).eval()
    words = torch.randint(100, (2, 7))
    options: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    expected = network.generate(words, attention_mask=torch.ones_like(words), **options)
    network.forward = torch.compile(network.forward, backend=candle, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = network.generate(words, attention_mask=torch.ones_like(words), **options)
    assert found.tolist() == expected.tolist()
