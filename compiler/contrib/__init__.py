"""onnxruntime's own operators, expanded into operators of the ONNX standard. Each family has one file.

An expansion gives the results of onnxruntime's CPU provider. It refuses a node if it does not handle an attribute, an
input or an output of the node. `expansion/` holds the code that the families share. The compiler imports a family
when a model has one of its operators.
"""

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
from compiler.contrib.expansion.expand import expand, is_known, is_operator, refusals
from compiler.contrib.expansion.families import FAMILIES
from compiler.contrib.expansion.node import MICROSOFT

__all__ = ["FAMILIES", "MICROSOFT", "expand", "is_known", "is_operator", "refusals"]
