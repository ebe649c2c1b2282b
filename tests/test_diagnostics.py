"""A refused model: everything that is in the way is said at once, whatever stage finds it."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto

import compiler
from compiler import CompileError, Options

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
VOLUME = "float[1, 1, 4, 4, 4] x, float[1, 1, 2, 2, 2] k, float[3] v, bool c"

MODELS = {
    "side by side": (
        f"g ({VOLUME}) => (z, u, w) {{ z = Conv(x, k) u = Melt(v) w = Celu<foo = 1>(v) }}",
        ["CC0301 Conv(z)", "CC0201 Melt(u)", "CC0203 Celu(w)"],
        [],
    ),
    "one behind the other": (
        f"g ({VOLUME}) => (w, m) {{ z = Conv(x, k) w = Celu<foo = 1>(z) m = Melt(w) }}",
        ["CC0301 Conv(z)", "CC0203 Celu(w)", "CC0201 Melt(m)"],
        [],
    ),
    "behind what has no type": (
        f"g ({VOLUME}) => (m, w, n) {{ m = Melt(v) w = Celu<foo = 1>(m) n = Melt(w) }}",
        ["CC0201 Melt(m)", "CC0201 Melt(n)"],
        ["Celu(w)"],
    ),
    "in both branches, and behind them": (
        f"""g ({VOLUME}) => (w) {{
            y = If (c) <then_branch = t () => (a) {{ a = Melt(v) }}, else_branch = e () => (b) {{ b = Conv(x, k) }}>
            w = Celu<foo = 1>(v)
        }}""",
        ["CC0301 Conv(b)", "CC0201 Melt(a)", "CC0203 Celu(w)"],
        [],
    ),
    "a broken graph": (
        f"g ({VOLUME}) => (z, u, w, r) {{ z = Conv(x, k) u = Melt(v) w = Celu(nowhere) r = Cast(v) s = Relu(v) }}",
        ["CC0106 Celu(w)", "CC0202 Cast(r)", "CC0301 Conv(z)", "CC0201 Melt(u)"],
        ["Relu(s)"],
    ),
    "a cycle": (
        f"g ({VOLUME}) => (z, b) {{ z = Conv(x, k) a = Relu(b) b = Melt(a) }}",
        ["CC0105 ", "CC0301 Conv(z)", "CC0201 Melt(b)"],
        ["Relu(a)"],
    ),
}


def refused(model, options):
    with pytest.raises(CompileError) as error:
        compiler.compile(model, options)
    found = [f"{each.code} {' '.join(each.origin.nodes) if each.origin else ''}" for each in error.value.diagnostics]
    return found, sorted(node for place in error.value.unchecked for node in place.nodes)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", MODELS)
def test_all_at_once(case, optimize):
    text, expected, unchecked = MODELS[case]
    found, left = refused(onnx.parser.parse_model(HEAD + text), Options(optimize=optimize))
    assert found == expected
    assert left == unchecked


def test_options_and_operators():
    text, expected, _ = MODELS["side by side"]
    found, _ = refused(onnx.parser.parse_model(HEAD + text), Options(dims={"batch": 2, "time": -1}))
    assert found == [*["CC0403 "] * 3, *expected]


def test_weights_and_operators(tmp_path):
    text, expected, _ = MODELS["side by side"]
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.add(name="short", data_type=TensorProto.FLOAT, dims=[2], raw_data=bytes(4))
    far = model.graph.initializer.add(name="far", data_type=TensorProto.FLOAT, dims=[1])
    far.data_location = TensorProto.EXTERNAL
    far.external_data.add(key="location", value="../far.bin")
    (tmp_path / "far.bin").write_bytes(np.zeros(1, np.float32).tobytes())
    model.opset_import[0].version = 1000
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(model.SerializeToString())
    found, left = refused(tmp_path / "in" / "m.onnx", Options())
    assert found == ["CC0103 ", "CC0101 ", "CC0104 ", *expected[:2]]
    assert left == ["Celu(w)"]
