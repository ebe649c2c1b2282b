"""A decoder of few operators, whose tokens NumPy computes too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.state.models import model_of

PROMPT = [2, 3]
_RANDOM = np.random.default_rng(3)
_TABLE, _HEAD = _RANDOM.standard_normal((10, 8), np.float32), 4 * _RANDOM.standard_normal((8, 10), np.float32)
_TEXT = """(int64[batch, n] input_ids, float[batch, past, 8] past_key_values_0{more})
    => (float[batch, n, 10] logits, float[batch, total, 8] present_0) {{
    new = Gather (table, input_ids)
    present_0 = Concat <axis = 1> (past_key_values_0, new)
    mean = ReduceMean <keepdims = 1> (present_0, axis)
    told = Add (new, mean)
    scores = MatMul (told, head)
    {rest}
}}"""
"""The logits of a token depend on the token, and on the mean of all tokens so far."""


def decoder(more: str = "", rest: str = "logits = Identity (scores)") -> onnx.ModelProto:
    """The model, with other inputs and nodes."""
    return model_of(_TEXT.format(more=more, rest=rest), table=_TABLE, head=_HEAD, axis=np.array([1]))


def write_decoder(path: Path) -> Path:
    onnx.save(decoder(), path)
    return path


def likeliest(count: int) -> list[int]:
    """The likeliest tokens after the prompt."""
    tokens = list(PROMPT)
    for _ in range(count):
        logits: Any = (_TABLE[tokens[-1]] + _TABLE[tokens].mean(0)) @ _HEAD
        tokens.append(int(logits.argmax()))
    return tokens[len(PROMPT) :]
