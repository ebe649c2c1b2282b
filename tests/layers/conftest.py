"""Makes exporting faster."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from unittest import mock

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_registry() -> Iterator[None]:
    """The dynamo exporter parses the source of all its translations in every export, which takes longer than the rest
    of it: here they are parsed once. A PyTorch that is built in another way is left as it is."""
    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        read = functools.cache(ONNXRegistry.from_torchlib)
    except (ImportError, AttributeError):
        yield
        return
    with mock.patch.object(ONNXRegistry, "from_torchlib", staticmethod(read)):
        yield
