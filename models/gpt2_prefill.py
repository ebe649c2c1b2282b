"""GPT-2 small reading a prompt of 128 tokens (Radford et al. 2019).

The network is that of `transformers`, the weights are seeded. It gives the logits and the cache of keys and values that
`models/gpt2_decode.py` goes on with.
https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from models.weights import seeded, tokens

TOLERANCE = 1e-5
CONFIG = GPT2Config()
OUTPUTS = ("logits", *(f"{kind}_{layer}" for layer in range(CONFIG.n_layer) for kind in ("key", "value")))
LENGTH = 128


class Prefill(nn.Module):
    """`input_ids [1, 128]` → `logits [1, 128, 50257]` and, for each layer, `key` and `value [1, 12, 128, 64]`."""

    def __init__(self) -> None:
        super().__init__()
        self.gpt2 = GPT2LMHeadModel(CONFIG)

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.gpt2(input_ids=input_ids, use_cache=True)
        return found.logits, *flat(found.past_key_values)


def flat(cache: object) -> list[torch.Tensor]:
    """Key and value of every layer."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def build() -> Prefill:
    return seeded(Prefill, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": tokens(CONFIG.vocab_size, 1, LENGTH)}
