"""Fixtures of the tests of `torch.compile(backend="candle")`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def fresh(quick_exports: None) -> Iterator[None]:
    """PyTorch without compiled functions, with a seed, and in a mode without gradients."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
