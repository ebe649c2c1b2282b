"""The measure `tokens`: the agreement of greedy decoding."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["tokens"]


def tokens(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    """The part of a text before the first other token, if greedy decoding takes the largest score of each position.

    The shape of both is `[…, positions, tokens]`. The result is the smallest one of all texts: 1 if all tokens are
    equal. Tokens with equal scores are interchangeable.

    Raises:
        ValueError: there are no positions.
    """
    if expected.ndim < 2:
        raise ValueError(f"an output of shape {list(expected.shape)} has no positions and tokens")
    if not expected.size:
        return 1.0
    largest = [each == each.max(axis=-1, keepdims=True) for each in (expected, found)]
    equal = np.minimum.accumulate((largest[0] & largest[1]).any(axis=-1), axis=-1)
    return float(equal.mean(axis=-1).min())
