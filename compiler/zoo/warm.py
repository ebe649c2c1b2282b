"""Imports sympy ahead of time: a process that begins as a copy of one with this module need not import it.

It starts no threads, which a copy of a process would lack.
"""

from __future__ import annotations

from compiler.ir.sympy_later import import_now

import_now()
