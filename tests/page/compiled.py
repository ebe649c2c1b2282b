"""A small model of two PyTorch modules, and the data of the page of its compilation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import onnx.parser

import compiler
from compiler import Options, Plan
from compiler.page.report import Compilation, report_data
from compiler.page.write import html_of
from compiler.rewrite.report import PassReport
from compiler.zoo.profile_model import profile_of
from tests.page.elements import data_in

__all__ = ["MODEL", "compiled", "data_of", "model"]

MODEL = """
<ir_version: 10, opset_import: ["": 20]>
m (float[2, 4] x, bool c) => (float[2, 4] y)
<float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, float[4] b = {1, 1, 1, 1}>
{
    same = Identity (x)
    product = MatMul (same, w)
    sum = Add (product, b)
    y = If (c) <
        then_branch = one () => (float[2, 4] one) { one = Relu (sum) },
        else_branch = other () => (float[2, 4] other) { low = Exp (sum) other = Softmax (low) }
    >
}
"""
SCOPES = {
    "Identity": ("['', 'body', 'n']", "['Net', 'Body', 'torch.nn.Identity', 'n']", 7),
    "MatMul": ("['', 'body', 'body.linear', 'n']", "['Net', 'Body', 'torch.nn.Linear', 'n']", 8),
    "Add": ("['', 'body', 'body.linear', 'n']", "['Net', 'Body', 'torch.nn.Linear', 'n']", 8),
}


def model(text: str = MODEL) -> onnx.ModelProto:
    """A model with the modules and lines that PyTorch's exporter writes."""
    made = onnx.parser.parse_model(text)
    for node in made.graph.node:
        if node.op_type in SCOPES:
            scopes, classes, line = SCOPES[node.op_type]
            trace = f'File "/home/a/net.py", line {line}, in forward'
            for key, value in (("name_scopes", scopes), ("class_hierarchy", classes), ("stack_trace", trace)):
                node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    return made


def compiled(proto: onnx.ModelProto) -> tuple[Plan, list[tuple[PassReport, float]]]:
    """The plan of a model, and the reports of its passes, each with the time of a quarter of a second."""
    reports: list[tuple[PassReport, float]] = []
    return compiler.compile(proto, Options(on_pass=lambda report: reports.append((report, 0.25)))), reports


def data_of(*, is_run: bool = False, title: str = "m.onnx", proto: onnx.ModelProto | None = None) -> Any:
    """The data of the page of a model, read from its text. With `is_run`, a run is measured and compared."""
    made = model() if proto is None else proto
    plan, reports = compiled(made)
    session = compiler.load(plan, threads=1)
    inputs = {"x": np.ones((2, 4), np.float32), "c": np.array(True)}
    profile = profile_of(plan, session, inputs) if is_run else None
    verified = compiler.verify(made, plan, inputs) if is_run else None
    page = Compilation(title, plan, reports, session, profile, verified, "the inputs of ones.npz")
    data = report_data(page, lambda name: f"about {name}")
    read = data_in(html_of(data, "report"))
    assert read == json.loads(json.dumps(data))
    return read
