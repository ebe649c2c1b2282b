"""A plan whose op does not accept its attributes is refused when it is loaded, whatever is known of shapes."""

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
    "three strides": ("Conv", '"strides":[1,1]', '"strides":[1,1,1]', "are not for rank 4"),
    "no groups of the transpose": ("ConvTranspose", '"groups":1', '"groups":0', "0 groups"),
    "no stride of the transpose": ("ConvTranspose", '"strides":[1,1]', '"strides":[1,0]', "stride of at least 1"),
    "no stride of a pool": ("MaxPool", '"strides":[1,1]', '"strides":[1,0]', "stride of at least 1"),
    "no kernel of a pool": ("MaxPool", '"kernel":[1,1]', '"kernel":[0,1]', "kernel of at least 1"),
}
SIZES = {"known": ("1, 2, 4, 4", "2, 2, 1, 1"), "symbols": ("n, k, h, w", "o, k, i, j")}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_when_it_is_loaded(name: str, sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    op, old, new, expected = CASES[name]
    x, w = SIZES[sizes]
    call = f"{op} <kernel_shape = [1, 1]> (x)" if op == "MaxPool" else f"{op} (x, w)"
    graph = f"(float[{x}] x, float[{w}] w) => (float[p, q, r, s] y) {{ y = {call} }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> m {graph}')
    document = compiler.compile(model, compiler.Options(optimize=False)).document
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert text.count(old) == 1
    path = tmp_path / "altered.plan"
    path.write_bytes(_file(text.replace(old, new), []))
    for load in (Plan.load, compiler.load, lambda path: compiler.load(Plan(path.read_bytes()))):
        with pytest.raises(PlanError, match=expected):
            load(path)
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(path)])
    assert ended.value.code == 1
    assert expected in capsys.readouterr().err
