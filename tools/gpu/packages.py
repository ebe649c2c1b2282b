"""The packages that every check needs. This module imports none of them, so that it can report missing ones."""

from __future__ import annotations

import importlib
import sys

PACKAGES = ("numpy", "ml_dtypes", "click")


def refuse_without_packages() -> None:
    """Ends the program with exit code 2 and a message if a package cannot be imported."""
    try:
        for package in PACKAGES:
            importlib.import_module(package)
    except ImportError:
        sys.stderr.write(f"install NumPy, ml_dtypes and click: pip install {' '.join(PACKAGES)}\n")
        sys.exit(2)
