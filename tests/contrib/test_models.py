"""Models of several operators: chains, nested graphs, float16, and models with bodies of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.parser import parse_model

import compiler
from compiler import CompileError, Options
from compiler.accuracy.reference import Reference
from tests.contrib.cases import Array, normal
from tests.lower.conftest import assert_same

HEADER = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>'
LAYER = """
    n{0} = SimplifiedLayerNormalization <axis = -1, epsilon = 1e-6> (h{0}, gamma)
    q{0} = com.microsoft.MatMulNBits <N = 32, K = 32, block_size = 16> (n{0}, codes, scales)
    r{0} = com.microsoft.RotaryEmbedding <num_heads = 4> (q{0}, places, cos, sin)
    a{0} = com.microsoft.MultiHeadAttention <num_heads = 4, unidirectional = 1> (r{0}, r{0}, q{0})
    g{0} = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (a{0}, weight)
    s{0}, , , h{1} = com.microsoft.SkipSimplifiedLayerNormalization (g{0}, h{0}, gamma)
"""
WEIGHTS = {
    "gamma": normal(32),
    "codes": np.random.default_rng(0).integers(0, 256, (32, 2, 8)).astype(np.uint8),
    "scales": np.abs(normal(32, 2)) / 20,
    "cos": normal(16, 4),
    "sin": normal(16, 4, seed=1),
    "weight": normal(32, 32) / 5,
}
X, PLACES = normal(2, 3, 32), np.array([[0, 1, 2], [4, 5, 6]])


def model(text: str, **weights: Array) -> onnx.ModelProto:
    parsed = parse_model(f"{HEADER} {text}")
    parsed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return parsed


def same(given: onnx.ModelProto, feeds: dict[str, Array], tolerance: float = 1e-5) -> None:
    """Equal results in onnxruntime, with and without optimization."""
    wanted = Reference(given, optimize=False).run(feeds)
    for optimize in (True, False):
        found = compiler.load(compiler.compile(given, Options(optimize=optimize)), threads=1).run(feeds)
        for name, value in wanted.items():
            assert_same(found[name], value, tolerance, tolerance, f"{name}, optimize={optimize}")


@pytest.mark.parametrize("shape", ["B, S, 32", "2, 3, 32"])
def test_a_chain_of_layers(shape: str) -> None:
    places = "B, S" if "B" in shape else "2, 3"
    layers = "".join(LAYER.format(at, at + 1) for at in range(12))
    text = f"m (float[{shape}] h0, int64[{places}] places) => (float[{shape}] h12) {{ {layers} }}"
    same(model(text, **WEIGHTS), {"h0": X, "places": PLACES}, 1e-4)


def test_a_chain_in_float16() -> None:
    text = f"m (float16[B, S, 32] h0, int64[B, S] places) => (float16[B, S, 32] h1) {{ {LAYER.format(0, 1)} }}"
    halves = {name: array.astype(np.float16) if array.dtype == np.float32 else array for name, array in WEIGHTS.items()}
    given = model(text.replace("com.microsoft.MultiHeadAttention", "com.microsoft.GroupQueryAttention"), **halves)
    attention = next(node for node in given.graph.node if node.op_type == "GroupQueryAttention")
    attention.input.extend(["", "", "lengths", "total"])
    del attention.attribute[1]
    attention.attribute.append(helper.make_attribute("kv_num_heads", 4))
    values = (np.int32([2, 2]), np.array(3, np.int32))
    given.graph.initializer.extend(map(numpy_helper.from_array, values, ("lengths", "total")))
    attention.output.extend(["key", "value"])
    same(given, {"h0": X.astype(np.float16), "places": PLACES}, 5e-3)


def test_a_layer_without_keys_of_its_own() -> None:
    """As Gemma's layers with a shared cache are written: empty keys, whose batch is known at run time only."""
    text = """
        m (float[B, S, 32] q, float[B, 2, P, 16] k, float[B, 2, P, 16] v, int32[B] last, int32 total)
        => (float[B, S, 32] y, float[B, 2, P, 16] key, float[B, 2, P, 16] value) {
            batch = Shape <start = 0, end = 1> (q)
            sizes = Concat <axis = 0> (batch, width)
            none = ConstantOfShape (sizes)
            y, key, value = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2>
                (q, none, none, k, v, last, total)
        }
    """
    feeds = {"q": normal(2, 1, 32), "k": normal(2, 2, 7, 16), "v": normal(2, 2, 7, 16, seed=1)}
    same(model(text, width=np.array([0, 32])), {**feeds, "last": np.int32([6, 3]), "total": np.array(7, np.int32)})


def test_in_a_branch_and_a_loop() -> None:
    text = """
        m (float[B, S, 32] x, bool c, int64 n) => (float[B, S, 32] y) {
            z = If (c) <
                then_branch = t () => (float[B, S, 32] a) { a = com.microsoft.SkipLayerNormalization (x, x, gamma) },
                else_branch = e () => (float[B, S, 32] b) { b = com.microsoft.BiasGelu (x, gamma) }
            >
            y = Loop (n, , z) <body = l (int64 i, bool k, float[P, Q, 32] h) => (bool o, float[P, Q, 32] r) {
                o = Identity (k)
                a = com.microsoft.MultiHeadAttention <num_heads = 4> (h, h, h)
                r = com.microsoft.FusedMatMul <alpha = 2.0> (a, weight)
            }>
        }
    """
    weights = {name: WEIGHTS[name] for name in ("gamma", "weight")}
    for chosen in (True, False):
        same(model(text, **weights), {"x": X, "c": np.array(chosen), "n": np.array(3)}, 1e-4)


def test_a_range_that_is_a_shape() -> None:
    text = """
        m (float[M, N] x) => (float[P] y) {
            s = Shape (x)
            t = com.microsoft.ExpandDims (x, zero)
            u = Squeeze (t, axes)
            one, counts, numbers = com.microsoft.Unique (flat)
            r = com.microsoft.Range (start, end)
            f = Reshape (u, minus)
            g = Gather (f, r)
            y = Add (g, one)
        }
    """
    weights = {
        "zero": np.array(0, np.int32),
        "axes": np.array([0]),
        "start": np.array(0),
        "end": np.array(2),
        "minus": np.array([-1]),
        "flat": np.float32([3, 3, 1]),
    }
    same(model(text, **weights), {"x": normal(3, 2)})


WRONG_BODY = """
    <domain: "com.microsoft", opset_import: ["": 21]>
    {name} (X, Y) => (Z) {{ Z = Sub (X, Y) }}
"""


@pytest.mark.parametrize("name", ["BiasGelu", "FusedMatMul"])
def test_the_compiler_prefers_its_own_body(name: str) -> None:
    """Exporters add bodies of onnxruntime's operators to the file. onnxruntime prefers its kernels too."""
    text = f"m (float[2, 2] x) => (float[2, 2] y) {{ y = com.microsoft.{name} (x, x) }} {WRONG_BODY.format(name=name)}"
    given = model(text)
    plain = model(text.partition("}")[0] + "}")
    plans = [compiler.load(compiler.compile(each)) for each in (given, plain)]
    results = [plan.run({"x": normal(2, 2)})["y"] for plan in plans]
    np.testing.assert_array_equal(*results)


BODIES = """
    <domain: "com.microsoft", opset_import: ["": 21, "own": 1]>
    FusedMatMul <alpha: float = 1.0, foo: int = 0> (A, B) => (Y) {
        P = own.product <factor: float = @alpha> (A, B)
        {last}
    }
    <domain: "own", opset_import: ["": 21]>
    product <factor: float = 3.0> (A, B) => (Y) {
        M = MatMul (A, B)
        F = Constant <value_float: float = @factor> ()
        Y = Mul (M, F)
    }
"""
PRODUCTS = """
    m (float[2, 2] x) => (float[2, 2] y, float[2, 2] z) {
        [refused] y = com.microsoft.FusedMatMul <alpha = 2.0, foo = 1> (x, x)
        z = com.microsoft.FusedMatMul <alpha = 4.0> (x, x)
    }
"""
"""The expansion refuses the attribute foo."""


def test_the_body_of_the_model_replaces_a_refused_node() -> None:
    """The expansion replaces the other node, whose body would subtract 1."""
    x = normal(2, 2)
    for optimize in (True, False):
        given = model(PRODUCTS + BODIES.replace("{last}", "C = Constant <value_float = 1.0> () Y = Sub (P, C)"))
        found = compiler.load(compiler.compile(given, Options(optimize=optimize, verify_passes=True))).run({"x": x})
        np.testing.assert_allclose(found["y"], 2 * (x @ x) - 1, rtol=1e-5)
        np.testing.assert_allclose(found["z"], 4 * (x @ x), rtol=1e-5)


@pytest.mark.parametrize(
    ("last", "code", "message"),
    [
        ("Y = own.Unknown (P)", "CC0201", "operator Unknown of domain 'own' is not supported"),
        ("Y = Elu <alpha: float = @alpha, other = 1> (P)", "CC0203", "does not support the attribute other"),
        ("Y = Concat (P, P)", "CC0202", "Concat needs the attribute axis"),
        ("Y = Add (P, Q)", "CC0106", "a model-local function cannot be inlined"),
        ("Y = Add (P, P, P)", "CC0205", "Add takes 2 inputs, found 3"),
    ],
)
def test_a_node_that_its_body_and_its_expansion_refuse_has_both_reasons(last: str, code: str, message: str) -> None:
    with pytest.raises(CompileError) as raised:
        compiler.compile(model(PRODUCTS + BODIES.replace("{last}", last)))
    first, *others = raised.value.diagnostics
    assert first.code == "CC0203" and "FusedMatMul-1 does not support the attribute foo" in first.message
    assert "refused" in str(first.origin)
    assert any(each.code == code and message in each.message for each in others)


GELUS = """
    m (float[2, 2] x, float[1] n) => (float[2, 2] y, float[2, 2] z, float[1] w) {{
        [refused] y = com.microsoft.QuickGelu <alpha = 2.0, foo = 1> (x)
        z = com.microsoft.QuickGelu <alpha = 2.0> (y)
        w = com.microsoft.Gelu (n)
    }}
    <domain: "com.microsoft", opset_import: ["": 21, "own": 1]>
    QuickGelu <alpha: float = 1.0, foo: int = 0> (X) => (Y) {{
        P = own.decreased <factor: float = @alpha> (X)
        {last}
    }}
    <domain: "com.microsoft", opset_import: ["": 21]>
    Gelu (X) => (Y) {{ Y = Neg (X) }}
    <domain: "own", opset_import: ["": 21]>
    decreased <factor: float = 3.0> (X) => (Y) {{
        F = Constant <value_float: float = @factor> ()
        Y = Sub (X, F)
    }}
"""
"""The lowering of QuickGelu refuses the attribute foo. The bodies compute something else."""


def test_the_body_of_the_model_replaces_a_node_that_the_lowering_refuses() -> None:
    x = normal(2, 2)
    for optimize in (True, False):
        given = model(GELUS.format(last="Y = Identity (P)"))
        reports: list[Any] = []
        options = Options(optimize=optimize, verify_passes=True, on_pass=reports.append)
        found = compiler.load(compiler.compile(given, options)).run({"x": x, "n": np.float32([0])})
        np.testing.assert_allclose(found["y"], x - 2, rtol=1e-5)
        np.testing.assert_allclose(found["z"], (x - 2) / (1 + np.exp(-2 * (x - 2))), rtol=1e-5)
        np.testing.assert_array_equal(found["w"], [0])
        missed = [each for report in reports if report.name == "expand_functions" for each in report.missed]
        assert [each.rule for each in missed] == ["lower QuickGelu"] and "foo" in str(missed)


def test_a_node_that_its_body_and_its_lowering_refuse_has_both_reasons() -> None:
    with pytest.raises(CompileError) as raised:
        compiler.compile(model(GELUS.format(last="Y = own.Unknown (P)")))
    assert [each.code for each in raised.value.diagnostics] == ["CC0203", "CC0201"]
    assert "QuickGelu-1 does not support the attribute foo" in raised.value.diagnostics[0].message


def test_a_node_that_its_lowering_refuses_without_a_body_is_refused() -> None:
    text = "m (float[2, 2] x) => (float[2, 2] y) { y = com.microsoft.QuickGelu <foo = 1> (x) }"
    with pytest.raises(CompileError) as raised:
        compiler.compile(model(text))
    assert [each.code for each in raised.value.diagnostics] == ["CC0203"]


def test_a_call_of_the_body_with_wrong_arguments_has_both_reasons() -> None:
    text = PRODUCTS.replace("foo = 1> (x, x)", "foo = 1> (x, x, x)")
    with pytest.raises(CompileError) as raised:
        compiler.compile(model(text + BODIES.replace("{last}", "Y = Identity (P)")))
    assert [each.code for each in raised.value.diagnostics] == ["CC0203", "CC0106"]


def test_bodies_of_known_operators_may_not_be_recursive() -> None:
    last = "Y = com.microsoft.FusedMatMul (P, P)"
    with pytest.raises(CompileError, match=r"functions call each other: com\.microsoft\.FusedMatMul → "):
        compiler.compile(model(PRODUCTS + BODIES.replace("{last}", last)))


def test_a_body_with_another_refused_operator_and_an_old_opset() -> None:
    """The body of BiasSplitGelu, of opset 6, contains a node of FusedMatMul that the expansion refuses, too."""
    text = """
        m (float[2, 2] x) => (float[2, 2] y) { y = com.microsoft.BiasSplitGelu (x, x) }
        <domain: "com.microsoft", opset_import: ["": 6, "com.microsoft": 1]>
        BiasSplitGelu (X, bias) => (Y) {
            S = Add <broadcast = 1, axis = 0> (X, bias)
            Y = com.microsoft.FusedMatMul <foo = 1> (S, bias)
        }
    """
    x = normal(2, 2)
    found = compiler.load(compiler.compile(model(text + BODIES.replace("{last}", "Y = Identity (P)")))).run({"x": x})
    np.testing.assert_allclose(found["y"], 2 * x @ x, rtol=1e-5)


def test_a_body_of_an_unknown_operator_is_used() -> None:
    text = f"m (float[2] x) => (float[2] y) {{ y = com.microsoft.Unknown (x, x) }} {WRONG_BODY.format(name='Unknown')}"
    found = compiler.load(compiler.compile(model(text))).run({"x": np.float32([1, 2])})
    np.testing.assert_array_equal(found["y"], [0, 0])


@pytest.mark.parametrize("name", ["QLinearReduceMean", "NhwcConv"])
def test_other_operators_are_refused_by_name(name: str) -> None:
    with pytest.raises(CompileError, match=f"operator {name} of domain 'com.microsoft' is not supported"):
        compiler.compile(model(f"m (float[2] x) => (float[2] y) {{ y = com.microsoft.{name} (x) }}"))


@pytest.mark.parametrize("name", ["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"])
def test_the_refusal_of_a_search_says_how_to_generate(name: str) -> None:
    with pytest.raises(CompileError, match=f"operator {name} of domain 'com.microsoft' is not supported") as raised:
        compiler.compile(model(f"m (float[2] x) => (float[2] y) {{ y = com.microsoft.{name} (x) }}"))
    [found] = raised.value.diagnostics
    assert "--state auto" in found.help and "examples/generate.py" in found.help


def test_a_refusal_names_the_node_and_the_attribute() -> None:
    text = "m (float[2, 3, 8] x) => (float[2, 3, 8] y) { [left] y = com.microsoft.FusedMatMul <foo = 1> (x, x) }"
    with pytest.raises(CompileError) as raised:
        compiler.compile(model(text))
    [found] = raised.value.diagnostics
    assert found.code == "CC0203" and "foo" in found.message and "left" in str(found.origin)


def of_unknown_rank(text: str) -> onnx.ModelProto:
    """The model, whose input x has no shape."""
    given = model(text)
    given.graph.input[0].type.tensor_type.ClearField("shape")
    return given


def test_unknown_ranks_are_refused() -> None:
    text = "m (float[] x, float[2, 2] g) => (float y) { y = com.microsoft.FusedMatMul <transA = 1> (x, g) }"
    with pytest.raises(CompileError, match="the rank of FusedMatMul's input A is not known"):
        compiler.compile(of_unknown_rank(text))


@pytest.mark.parametrize("name", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
def test_sums_with_a_skip_of_unknown_rank(name: str, shape: tuple[int, ...]) -> None:
    """As onnxruntime's optimizer of BART writes them, after a Reshape to a computed shape."""
    given = of_unknown_rank(f"m (float[] x, float[8] g) => (float y) {{ y = com.microsoft.{name} (x, x, g) }}")
    given.graph.output[0].type.tensor_type.ClearField("shape")
    same(given, {"x": normal(*shape), "g": normal(8)})
