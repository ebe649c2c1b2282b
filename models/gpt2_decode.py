"""GPT-2 small writing one token after 128 (Radford et al. 2019).

The network is that of `transformers`, the weights are seeded. See `models/gpt2_prefill.py`, which makes the cache.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import DynamicCache, GPT2LMHeadModel

from models.gpt2_prefill import CONFIG, LENGTH, OUTPUTS, flat
from models.weights import noise, seeded, tokens

__all__ = ["OUTPUTS", "Decode", "build", "inputs"]

TOLERANCE = 1e-5


class Decode(nn.Module):
    """`input_ids [1, 1]` and a `key` and `value [1, 12, 128, 64]` for each layer → `logits`, longer keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.gpt2 = GPT2LMHeadModel(CONFIG)

    def forward(self, input_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = DynamicCache(zip(past[::2], past[1::2], strict=True))
        found = self.gpt2(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return found.logits, *flat(found.past_key_values)


def build() -> Decode:
    return seeded(Decode, inputs())


def inputs() -> dict[str, torch.Tensor]:
    shape = (1, CONFIG.n_head, LENGTH, CONFIG.n_embd // CONFIG.n_head)
    cache = {f"past_{index}": noise(*shape) for index in range(2 * CONFIG.n_layer)}
    return {"input_ids": tokens(CONFIG.vocab_size, 1, 1), **cache}
