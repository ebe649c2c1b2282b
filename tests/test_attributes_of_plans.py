"""A session refuses a plan with attributes that its op does not accept, even if no shape is known."""

from __future__ import annotations

import json
from pathlib import Path

import onnx.parser
import pytest

import compiler
from compiler import Plan, PlanError
from compiler.cli import main
from compiler.plan.write import _file

CASES = {
    "no groups": ("Conv", '"groups":1', '"groups":0', "0 groups"),
    "no stride": ("Conv", '"strides":[1,1]', '"strides":[0,1]', "stride of at least 1"),
    "no dilation": ("Conv", '"dilations":[1,1]', '"dilations":[1,0]', "dilation of at least 1"),
    "three strides": ("Conv", '"strides":[1,1]', '"strides":[1,1,1]', "do not fit rank 4"),
    "no groups of the transpose": ("ConvTranspose", '"groups":1', '"groups":0', "0 groups"),
    "no stride of the transpose": ("ConvTranspose", '"strides":[1,1]', '"strides":[1,0]', "stride of at least 1"),
    "no stride of a pool": ("MaxPool", '"strides":[1,1]', '"strides":[1,0]', "stride of at least 1"),
    "no groups of a norm": ("GroupNorm", '"groups":1', '"groups":0', "0 groups"),
    "no kernel of an unpool": ("MaxUnpool", '"kernel":[1,1]', '"kernel":[1,0]', "kernel and a stride of at least 1"),
    "no heads": ("RotaryEmbedding", '"heads":2', '"heads":0', "0 heads"),
    "no kernel of a pool": ("MaxPool", '"kernel":[1,1]', '"kernel":[0,1]', "kernel of at least 1"),
}
CALLS = {
    "Conv": "Conv (x, w)",
    "ConvTranspose": "ConvTranspose (x, w)",
    "MaxPool": "MaxPool <kernel_shape = [1, 1]> (x)",
    "MaxUnpool": "MaxUnpool <kernel_shape = [1, 1]> (x, i)",
    "GroupNorm": "GroupNormalization <num_groups = 1> (x, v, v)",
    "RotaryEmbedding": "RotaryEmbedding <num_heads = 2> (t, c, c)",
}
SIZES = {
    "known": {"x": "1, 2, 4, 4", "w": "2, 2, 1, 1", "t": "1, 3, 8", "c": "1, 3, 2", "y": "1, 2, 4, 4"},
    "symbols": {"x": "n, k, h, w", "w": "o, k, i, j", "t": "n, l, d", "c": "n, l, e", "y": "p, q, r, s"},
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_when_it_is_loaded(name: str, sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    op, old, new, expected = CASES[name]
    known = SIZES[sizes]
    given = ", ".join(f"float[{known[name]}] {name}" for name in "xwtc")
    result = known["t" if op == "RotaryEmbedding" else "y"]
    graph = f"({given}, float[2] v, int64[{known['x']}] i) => (float[{result}] y) {{ y = {CALLS[op]} }}"
    model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["": 23]> m {graph}')
    document = compiler.compile(model, compiler.Options(optimize=False)).document
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert text.count(old) == 1
    path = tmp_path / "altered.plan"
    path.write_bytes(b"".join(_file(text.replace(old, new), [])))
    for load in (Plan.load, compiler.load, lambda path: compiler.load(Plan(path.read_bytes()))):
        with pytest.raises(PlanError, match=expected):
            load(path)
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(path)])
    assert ended.value.code == 1
    assert expected in capsys.readouterr().err
