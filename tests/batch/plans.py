"""Plans of the tests, and what a run over rows has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

import compiler
from compiler import Plan

LINES = "(float[batch, 2] x) => (float[batch, 2] y) { y = Add(x, x) }"
FIXED = LINES.replace("batch", "4")
TOKENS = "(int64[batch, tokens] ids) => (int64[batch, tokens] y) { y = Add(ids, ids) }"
LOOKUP = """(int64[batch] i) => (float[batch] y) <float[3] table = {10, 20, 30}> {
    y = Gather (table, i)
}"""
TABLES = "(float[batch, 2, 3] x) => (float[batch, 2, 3] y) { y = Neg(x) }"
PICTURES = "(float[batch, 3, 2, 4] image) => (float[batch, 3, 2, 4] y) { y = Identity(image) }"
WORDS = "(string[batch] s) => (string[batch] y) { y = Identity(s) }"


def plan_of(graph: str) -> Plan:
    """The plan of a graph."""
    return compiler.compile(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {graph}'))


def ramp(rows: int) -> np.ndarray[Any, Any]:
    """Rows of two numbers, each different."""
    return np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)


def lines_of(path: Path) -> list[Any]:
    """The lines of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def bad_rows(folder: Path) -> list[tuple[int, str]]:
    """The bad rows of an output with their reasons."""
    path = folder / "_bad_rows.jsonl"
    return [(line["row"], line["reason"]) for line in lines_of(path)] if path.exists() else []


def written(folder: Path, name: str = "y") -> tuple[list[int], Any]:
    """The numbers of the rows in their files, and an output, of all parts in .npz files."""
    parts = []
    for path in sorted(folder.glob("part-*.npz")):
        with np.load(path) as arrays:
            parts.append((arrays["source_row"], arrays[name]))
    return [int(row) for rows, _ in parts for row in rows], np.concatenate([values for _, values in parts])
