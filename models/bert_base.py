"""BERT-base on 128 tokens (Devlin et al. 2018, https://arxiv.org/abs/1810.04805).

The network is that of `transformers`, the weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertModel

from models.weights import seeded, tokens

TOLERANCE = 1e-5
OUTPUTS = ("hidden", "pooled")
LENGTH, PADDING = 128, 28


class Bert(nn.Module):
    """`input_ids, attention_mask [1, 128]` → `hidden [1, 128, 768]`, `pooled [1, 768]`."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig())

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.bert(input_ids=input_ids, attention_mask=attention_mask)
        return found.last_hidden_state, found.pooler_output


def build() -> Bert:
    return seeded(Bert, inputs())


def inputs() -> dict[str, torch.Tensor]:
    mask = torch.ones(1, LENGTH, dtype=torch.int64)
    mask[:, LENGTH - PADDING :] = 0
    return {"input_ids": tokens(BertConfig().vocab_size, 1, LENGTH), "attention_mask": mask}
