"""Refused models: the compiler reports all findings at once, from every stage."""

import pickle

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto

import compiler
from compiler import CompileError, Options, errors

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
    found, _ = refused(onnx.parser.parse_model(HEAD + text), Options(dims={"batch": 2, "time": 1}))
    assert found == [*["CC0403 "] * 2, *expected]


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


ADVICE = [
    ("y = conv(x)", {}, "operator conv is not supported", "did you mean Conv?"),
    ("y = Convolution(x)", {}, "operator Convolution is not supported", ""),
    (
        "y = LayerNormalisation(x)",
        {},
        "operator LayerNormalisation is not supported",
        "did you mean LayerNormalization?",
    ),
    ("y = MeanVarianceNormalisation(x)", {}, "not supported", "did you mean MeanVarianceNormalization?"),
    ("y = acme.Relu(x)", {}, "operator Relu of domain 'acme' is not supported", "there is Relu of the standard domain"),
    ("y = BiasGelu(x)", {}, "operator BiasGelu is not supported", "there is BiasGelu of domain 'com.microsoft'"),
    ("y = Bogus(x)", {}, "operator Bogus is not supported", ""),
    ("y = Neg(x)", {"dims": {"bach": 1}}, "no input has a dimension 'bach'", "did you mean batch?"),
    (
        "y = Neg(x)",
        {"dims": {"time": 1}},
        "no input has a dimension 'time'",
        "the inputs have the dimensions batch, z.1",
    ),
    ("y = Neg(x)", {"passes": ["fold_constant"]}, "there is no pass 'fold_constant'", "did you mean fold_constants?"),
]


@pytest.mark.parametrize(("node", "options", "message", "advice"), ADVICE, ids=[each for each, *_ in ADVICE])
def test_an_error_suggests_the_intended_name(node, options, message, advice):
    head = HEAD.replace('"": 20', '"": 20, "acme": 1')
    text = f"g (float[batch, 3] x, float[3, ?] z) => (float[batch, 3] y) {{ {node} }}"
    with pytest.raises(CompileError) as error:
        compiler.compile(onnx.parser.parse_model(head + text), Options(**options))
    [found] = error.value.diagnostics
    assert message in found.message
    assert found.help == advice
    joint = {"": "", "?": " "}.get(advice[-1:], "; ")
    assert str(found).splitlines()[-1] == f"  help: {advice}{joint}see `candlec explain {found.code}`"


@pytest.mark.parametrize(
    "error",
    [
        compiler.InputError("x", "float32 [2]", "nothing"),
        compiler.RunError(3, "Gather", ["float32 [3]"], "node g", "an index is out of range", ["Loop"]),
        compiler.PlanError(["one", "two"]),
        compiler.CompileError([compiler.Diagnostic("CC0201", "it is unknown")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_reach_other_processes(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert (str(found), found.args) == (str(error), error.args)
    assert vars(found) == vars(error)


def test_the_command_is_named_as_it_can_be_called(tmp_path, monkeypatch):
    """The program's name if the shell finds it, else its path; `candlec` if the caller is another program."""
    folders = [tmp_path / "venv", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for name in ("candlec", "cc"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    own = folders[0] / "candlec"
    for argument, path, called_as, expected in (
        (own, folders[0], "", "candlec"),
        (own, folders[1], "", str(own)),
        (own, tmp_path, "", str(own)),
        (own, folders[0], "cc", "cc"),
        (own, folders[1], "cc", str(folders[0] / "cc")),
        ("/usr/bin/pytest", folders[1], "", "candlec"),
        ("", folders[1], "", "candlec"),
    ):
        monkeypatch.setattr("sys.argv", [str(argument)])
        monkeypatch.setenv("PATH", str(path))
        monkeypatch.setenv("CANDLEC_CALLED_AS", called_as)
        assert errors.program() == expected


@pytest.mark.parametrize(
    ("constants", "node", "message"),
    [
        ("int64[2] a = {1, 2}, int64[2] b = {0, 1}", "q = Div(a, b)", "an integer is divided by zero"),
        ("int64[3] a = {1, 2, 3}, int64[1] b = {7}", "q = Gather(a, b)", "index 7 is out of range"),
        ("float[2, 2] a = {1, 2, 3, 4}, float[3, 1] b = {1, 2, 3}", "q = MatMul(a, b)", "MatMul"),
    ],
)
def test_constants_that_can_never_be_computed_are_refused(constants, node, message):
    text = f"g (float[2] x) => (float[m] y) <{constants}> {{ {node} f = Cast <to = 1> (q) y = Add(x, f) }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    with pytest.raises(CompileError, match=message) as refused:
        compiler.compile(model)
    assert refused.value.diagnostics[0].origin.nodes


def test_constants_of_a_branch_may_fail():
    branch = "a = Constant <value_ints = [1]> () b = Constant <value_ints = [0]> () q = Div(a, b) o = Cast <to = 1> (q)"
    text = f"""g (float[1] x, bool c) => (float[1] y) {{
        y = If(c) <then_branch = t () => (float[1] o) {{ {branch} }}, else_branch = e () => (float[1] o) {{
            o = Neg(x)
        }}>
    }}"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    session = compiler.load(compiler.compile(model))
    assert session.run({"x": np.ones(1, np.float32), "c": np.array(False)})["y"] == -1
