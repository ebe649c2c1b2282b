"""Imports and a compilation ahead of time: a process that begins as a copy of one with this module compiles at once.

It starts no threads, which a copy of a process would lack.
"""

from __future__ import annotations

import importlib

import onnx.parser

import compiler
from compiler.ir.sympy_later import LATER

_TINY = """<ir_version: 10, opset_import: ["" : 21]>
tiny (float[n, m] x) => (float[k] y) {
    size = Shape(x)
    flat = Reshape(x, size)
    exp = Exp(flat)
    shape = Constant <value_ints = [-1]> ()
    y = Reshape(exp, shape)
}"""


def _warm_up() -> None:
    for name in LATER:
        importlib.import_module(name)
    compiler.compile(onnx.parser.parse_model(_TINY))


_warm_up()
