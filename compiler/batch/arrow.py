"""Imports pyarrow when data or parts are in Parquet."""

from __future__ import annotations

import importlib
from typing import Any

from compiler.errors import Error

__all__ = ["parquet", "pyarrow"]


def pyarrow() -> Any:
    """The package.

    Raises:
        Error: it is not installed.
    """
    return _imported("pyarrow")


def parquet() -> Any:
    """Its module for Parquet."""
    return _imported("pyarrow.parquet")


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = 'Parquet needs pyarrow, which is not installed: run pip install "candle-compiler[batch]"'
        raise Error(message) from error
