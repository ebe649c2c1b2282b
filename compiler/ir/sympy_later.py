"""Imports `onnx_ir` and `onnx_shape_inference` without sympy.

Sympy takes as long to import as everything else together, and only symbolic dimensions need it, but both packages
import it at the top. During their import, stand-ins replace sympy and the modules that compute with it in
`sys.modules`. A stand-in imports the real module at the first access to an attribute, and returns the real attribute.
Afterwards no stand-in remains in `sys.modules`, so that every other import finds the real module.

The module does nothing if one of the packages, or sympy, is already imported. It uses no stand-in for a module that
the installed version of a package lacks.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["LATER", "StandIn", "import_now"]

LATER = (
    "sympy",
    "onnx_ir._symbolic_shapes",
    "onnx_shape_inference._symbolic_shapes",
    "onnx_shape_inference._constraints",
)
"""The modules to import at their first use."""


class StandIn(ModuleType):
    """A stand-in for the module with its name. The first access to an attribute imports the module."""

    def __getattr__(self, name: str) -> Any:
        self.leave()
        found = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = found
        return found

    def leave(self) -> None:
        """Restores the entry in `sys.modules`."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def import_now() -> None:
    """Import the modules that stand-ins would import at their first use."""
    for name in LATER:
        importlib.import_module(name)


def _import_packages() -> None:
    """Imports both packages, and the rules of inference, which the second package imports on first use."""
    stand_ins = [StandIn(name) for name in LATER]
    sys.modules.update({each.__name__: each for each in stand_ins})
    try:
        importlib.import_module("onnx_ir")
        importlib.import_module("onnx_shape_inference").registry.collect()
    finally:
        for each in stand_ins:
            each.leave()


if not {"onnx_ir", "onnx_shape_inference", *LATER} & sys.modules.keys():
    _import_packages()
