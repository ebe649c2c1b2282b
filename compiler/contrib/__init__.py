"""onnxruntime's own operators, expanded into operators of the ONNX standard. Each family has one file.

An expansion computes what onnxruntime's CPU provider computes. It refuses a node if it does not handle an attribute, an
input or an output of the node.
"""

from importlib import import_module
from pkgutil import iter_modules

from compiler.contrib.expand import expand, is_known, refusals
from compiler.contrib.node import EXPANSIONS, MICROSOFT

__all__ = ["EXPANSIONS", "MICROSOFT", "expand", "is_known", "refusals"]

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")  # a family registers its expansions when it is imported
