"""Fixtures of the tests of `torch.compile(backend="candle")`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh(quick_exports: None) -> Iterator[None]:
    """PyTorch without compiled functions, with a seed, and in a mode without gradients."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
