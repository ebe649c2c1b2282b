"""Small networks of torchvision and transformers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import compiler
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


def gpt2(transformers: Any) -> Any:
    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 4}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=100, **sizes)).eval()


def llama(transformers: Any) -> Any:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=100, **sizes, **heads)).eval()


def padded(length: int) -> tuple[Any, Any]:
    """Two texts, and the mask of their words: the second text has padding on its left, which attends to no word."""
    words, mask = torch.randint(3, 100, (2, length)), torch.ones(2, length, dtype=torch.long)
    words[1, :3] = mask[1, :3] = 0
    return words, mask


@pytest.mark.parametrize("build", [gpt2, llama], ids=lambda each: each.__name__)
def test_texts_with_padding_on_the_left(build: Any) -> None:
    network = build(pytest.importorskip("transformers", reason="needs transformers"))
    run = compiled(network, dynamic=True)
    for length in (7, 9):
        words, mask = padded(length)
        check(run(words, attention_mask=mask).logits, network(words, attention_mask=mask).logits, FLOAT)


@pytest.mark.parametrize("build", [gpt2, llama], ids=lambda each: each.__name__)
def test_decoders_generate(build: Any) -> None:
    """One text has padding on its left."""
    network = build(pytest.importorskip("transformers", reason="needs transformers"))
    words, mask = padded(7)
    options: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    expected = network.generate(words, attention_mask=mask, **options)
    network.forward = torch.compile(network.forward, backend=candle, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = network.generate(words, attention_mask=mask, **options)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("build", "attentions"), [(gpt2, 0), (llama, 1)], ids=["gpt2", "llama"])
def test_an_exported_decoder_takes_padding_on_the_left(build: Any, attentions: int, tmp_path: Path) -> None:
    """The results for padding are those of PyTorch too.

    The attention of Llama's layer is one step. In this graph of GPT-2, the sizes of the mask are unknown.
    """
    network = build(pytest.importorskip("transformers", reason="needs transformers"))
    words, mask = padded(7)
    kwargs = {"input_ids": words, "attention_mask": mask, "use_cache": False}
    dims = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}
    path = compiler.export(network, (), tmp_path / "m.onnx", dims, kwargs=kwargs, outputs=["logits"])
    session = compiler.load(compiler.compile(path), threads=1)
    assert [step.op for step in session.prepared().steps].count("Attention") == attentions
    for length in (7, 9):
        words, mask = padded(length)
        found = session.run({"input_ids": words, "attention_mask": mask}, as_="torch")["logits"]
        check(found, network(words, attention_mask=mask, use_cache=False).logits, FLOAT)
