"""Decoders of transformers with weights of GGUF files compute what PyTorch computes, and stay quantized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import Options
from compiler.rewrite.report import PassReport
from compiler.rewrite.stored.architectures import ARCHITECTURES
from tests.generation.models import PROMPT, torch, transformers
from tests.gguf_files import Matrix, gguf, matrix, plain

_SIZES = {
    "vocab_size": 211,
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _SIZES),
    "qwen2": ("Qwen2", {**_SIZES, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {**_SIZES, "head_dim": 64}),
    "gemma": ("Gemma", {**_SIZES, "head_dim": 64, "tie_word_embeddings": True}),
    "gemma2": ("Gemma2", {**_SIZES, "head_dim": 64, "tie_word_embeddings": True}),
    "gemma3": ("Gemma3", {**_SIZES, "head_dim": 64, "tie_word_embeddings": True}),
    "phi3": ("Phi3", _SIZES),
    "gpt2": ("GPT2", {"n_layer": 2, "n_head": 4, "n_embd": 256, "n_positions": 64, "vocab_size": 211}),
}
"""An architecture of llama.cpp → the model of transformers, and its settings."""
MIXED = ["Q4_K", "Q6_K", "Q8_0", "Q4_0"]
"""The types of the matrices, in turn, as in files of llama.cpp that mix types."""
PARTS = {"llama": 0.45, "qwen2": 0.42}
"""The largest size of a plan, as a part of the plan with floats. A table of embeddings stays in floats."""


class Logits(torch.nn.Module):
    """Tokens `[batch, n]` → logits `[batch, n, vocabulary]`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any) -> Any:
        return self.model(input_ids, use_cache=False).logits


def model_of(architecture: str) -> Any:
    """The model, with seeded weights."""
    torch.manual_seed(0)
    family, sizes = FAMILIES[architecture]
    config = getattr(transformers, f"{family}{'Text' * (family == 'Gemma3')}Config")(**sizes)
    kind = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    return getattr(transformers, kind)(config).eval()


def write_file(model: Any, architecture: str, path: Path) -> None:
    """Give a model the weights of a new GGUF file, converted as llama.cpp does."""
    tensors, heads = {}, {"attn_q": 4, "attn_k": 2}
    for seed, (name, parameter) in enumerate(model.named_parameters()):
        tensor = ARCHITECTURES[architecture].tensors_of(name)[0]
        if parameter.ndim == 1:
            vector = np.random.default_rng(seed).standard_normal(parameter.shape, np.float32) / 4
            parameter.data = torch.from_numpy(vector)
            is_shifted = architecture.startswith("gemma") and name.endswith("norm.weight")
            tensors[tensor] = plain(vector + np.float32(is_shifted))
            continue
        is_turned = architecture == "gpt2" and ".c_" in name  # a Conv1D of transformers has the matrix [K, N]
        made = matrix(MIXED[seed % len(MIXED)], *parameter.shape[:: -1 if is_turned else 1], seed=seed, size=0.05)
        parameter.data = torch.from_numpy(made.numbers.T.copy() if is_turned else made.numbers)
        if architecture == "llama" and (count := heads.get(tensor.split(".")[-2])):
            made = interleaved(made, count)
        tensors[tensor] = made.stored()
    metadata: dict[str, str | int] = {"general.architecture": architecture}
    metadata |= {f"{architecture}.attention.head_count": 4, f"{architecture}.attention.head_count_kv": 2}
    path.write_bytes(gguf(tensors, metadata))


def interleaved(made: Matrix, heads: int) -> Matrix:
    """The rows in llama.cpp's order (`LlamaModel.permute`)."""
    count = len(made.rows)
    return made._replace(rows=made.rows.reshape(heads, 2, count // heads // 2, -1).swapaxes(1, 2).reshape(count, -1))


@pytest.mark.parametrize("architecture", FAMILIES)
def test_logits_are_those_of_pytorch(architecture: str, tmp_path: Path, quick_exports: None) -> None:
    model, onnx, path = model_of(architecture), tmp_path / "decoder.onnx", tmp_path / "decoder.gguf"
    compiler.export(Logits(model), (torch.ones(1, 3, dtype=torch.int64),), onnx, {"input_ids": {1: "n"}}, check=False)
    write_file(model, architecture, path)
    reports: list[PassReport] = []
    plan = compiler.compile(onnx, Options(weights=path, on_pass=reports.append))
    with torch.no_grad():
        expected = Logits(model)(torch.from_numpy(PROMPT)).numpy()
    (found,) = compiler.load(plan, threads=1).run({plan.inputs[0].name: PROMPT}).values()
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
    kept = next(report for report in reports if report.name == "keep_blocks")
    matrices = [each for each in model.parameters() if each.ndim == 2]
    readers = len(matrices) + model.config.tie_word_embeddings  # a tied table has two
    assert len(kept.fired) in ((readers - 1, readers) if architecture == "gpt2" else (readers,))
    assert not kept.near_misses
    if architecture in PARTS:
        assert len(plan.data) <= PARTS[architecture] * len(compiler.compile(onnx).data)
