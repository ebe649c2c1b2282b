"""onnxruntime as a reference whose products of uint8 and int8 cannot saturate, on any processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import compiler
from compiler.accuracy import reference, unsigned
from compiler.accuracy.reference import Reference
from compiler.accuracy.unsigned import make_unsigned, products_of
from compiler.errors import CompileError
from compiler.frontend.load import load_model
from compiler.passes.infer_shapes import infer_shapes

RANDOM = np.random.default_rng(3)
HEADER = '<ir_version: 9, opset_import: ["" : 21, "com.microsoft" : 1]>'

INT8 = ir.DataType.INT8

Array = np.ndarray[Any, Any]


def codes(dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model_of(text: str, **constants: Array) -> onnx.ModelProto:
    """A model from ONNX's text form, with initializers."""
    model = parse_model(f"{HEADER}\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return onnx.shape_inference.infer_shapes(model)


X, A = codes(np.uint8, 1, 4, 6, 5), codes(np.uint8, 5, 40)
KERNEL, B = codes(np.int8, 6, 4, 3, 3), codes(np.int8, 40, 6)
SCALE, SCALES = np.float32(0.02), np.linspace(0.01, 0.02, 6, dtype=np.float32)
U, S = np.array(120, np.uint8), np.array(-3, np.int8)
STEP = np.float32(1.5)
NUMBERS = RANDOM.standard_normal((5, 40)).astype(np.float32)

CASES: dict[str, tuple[onnx.ModelProto, dict[str, Array]]] = {
    "MatMulInteger, constant": (
        model_of("m (uint8[5, 40] a) => (int32[5, 6] y) { y = MatMulInteger (a, b, u, s) }", b=B, u=U, s=S),
        {"a": A},
    ),
    "MatMulInteger, without zero points": (
        model_of("m (uint8[5, 40] a) => (int32[5, 6] y) { y = MatMulInteger (a, b) }", b=B),
        {"a": A},
    ),
    "MatMulInteger, at run time": (
        model_of("m (uint8[5, 40] a, int8[40, 6] b, int8[6] s) => (int32[5, 6] y) { y = MatMulInteger (a, b, , s) }"),
        {"a": A, "b": B, "s": codes(np.int8, 6)},
    ),
    "ConvInteger": (
        model_of(
            "m (int8[1, 4, 6, 5] x) => (int32[1, 6, 4, 3] y) { y = ConvInteger (x, w) }",
            w=codes(np.uint8, 6, 4, 3, 3),
        ),
        {"x": codes(np.int8, 1, 4, 6, 5)},
    ),
    "QLinearMatMul": (
        model_of(
            "m (uint8[5, 40] a) => (uint8[5, 6] y) { y = QLinearMatMul (a, p, u, b, q, s, r, u) }",
            b=B, p=SCALE, q=SCALE, r=STEP, u=U, s=S,
        ),
        {"a": A},
    ),
    "QLinearConv": (
        model_of(
            "m (uint8[1, 4, 6, 5] x) => (uint8[1, 6, 4, 3] y) { y = QLinearConv (x, p, u, w, q, s, r, u) }",
            w=KERNEL, p=SCALE, q=SCALES, r=STEP, u=U, s=np.zeros(6, np.int8),
        ),
        {"x": X},
    ),
    "Conv between codes": (
        model_of(
            """m (uint8[1, 4, 6, 5] x) => (uint8[1, 6, 4, 3] y) {
                xf = DequantizeLinear (x, p, u)
                wf = DequantizeLinear <axis = 0> (w, q)
                z = Conv (xf, wf)
                y = QuantizeLinear (z, r, u)
            }""",
            w=KERNEL, p=SCALE, q=SCALES, r=STEP, u=U,
        ),
        {"x": X},
    ),
    "Gemm between int8 codes": (
        model_of(
            """m (float[5, 40] a) => (float[5, 6] y) {
                ac = QuantizeLinear (a, p, s)
                af = DequantizeLinear (ac, p, s)
                bf = DequantizeLinear (b, q, s)
                z = Gemm (af, bf)
                zc = QuantizeLinear <output_dtype = 3> (z, r)
                y = DequantizeLinear (zc, r)
            }""",
            b=B, p=SCALE, q=SCALE, r=STEP, s=S,
        ),
        {"a": NUMBERS},
    ),
    "codes that are given, too": (
        model_of(
            """m (float[5, 40] a) => (int8[5, 40] ac, float[5, 6] y) {
                ac = QuantizeLinear (a, p, s)
                af = DequantizeLinear (ac, p, s)
                bf = DequantizeLinear (b, q)
                y = MatMul (af, bf)
            }""",
            b=B, p=SCALE, q=SCALE, s=S,
        ),
        {"a": NUMBERS},
    ),
    "scales at run time": (
        model_of(
            """m (uint8[5, 40] a, float[6] q) => (float[5, 6] y) {
                af = DequantizeLinear (a, p, u)
                bf = DequantizeLinear <axis = 1> (b, q)
                y = MatMul (af, bf)
            }""",
            b=B, p=SCALE, u=U,
        ),
        {"a": A, "q": SCALES},
    ),
    "DynamicQuantizeLinear": (
        model_of(
            """m (float[5, 40] a) => (float[5, 6] y) {
                ac, p, u = DynamicQuantizeLinear (a)
                z = MatMulInteger (ac, b, u, s)
                zf = Cast <to = 1> (z)
                both = Mul (p, q)
                y = Mul (zf, both)
            }""",
            b=B, q=SCALE, s=S,
        ),
        {"a": NUMBERS},
    ),
    "DynamicQuantizeMatMul": (
        model_of(
            "m (float[5, 40] a) => (float[5, 6] y) { y = com.microsoft.DynamicQuantizeMatMul (a, b, q, s) }",
            b=B, q=SCALE, s=S,
        ),
        {"a": NUMBERS},
    ),
    "a branch": (
        model_of(
            """m (bool c, uint8[5, 40] a) => (int32[5, 6] y) {
                y = If (c) <
                    then_branch = t () => (int32[5, 6] yt) { yt = MatMulInteger (a, b) },
                    else_branch = e () => (int32[5, 6] ye) { ye = MatMulInteger (a, b, u, s) }
                >
            }""",
            b=B, u=U, s=S,
        ),
        {"c": np.array(True), "a": A},
    ),
}  # fmt: skip
WRITTEN_OUT = {"DynamicQuantizeMatMul": "DynamicQuantizeLinear"}
"""An operator of onnxruntime → the case that computes the same with operators of ONNX."""


UNMIXED = {"Gemm between int8 codes", "codes that are given, too"}
"""Cases that onnxruntime computes as products of int8 and int8."""


@pytest.fixture
def saturating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats every processor as one without VNNI."""
    monkeypatch.setattr(reference, "saturates", lambda: True)


def optimized(source: bytes, folder: Path) -> onnx.ModelProto:
    """The graph that onnxruntime runs after its own optimizations."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(folder / "optimized.onnx"), 4
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return onnx.load(folder / "optimized.onnx")


def mixed_products(model: onnx.ModelProto) -> tuple[int, list[str]]:
    """The number of integer products of a model, and the operators of those of uint8 and int8."""
    loaded = load_model(model).model
    infer_shapes.run(loaded)
    products = list(products_of(loaded))
    mixed = [node.op_type for node, left, right in products if right == INT8 and left != INT8]
    return len(products), mixed


@pytest.mark.parametrize("name", CASES)
def test_no_product_of_uint8_and_int8_is_left(name: str, tmp_path: Path, saturating: None) -> None:
    model, inputs = CASES[name]
    given = Reference(model)
    assert isinstance(given.source, bytes)
    assert "uint8" in given.note and "no VNNI" in given.note
    for form in (onnx.load_from_string(given.source), optimized(given.source, tmp_path)):
        assert mixed_products(form)[1] == []
    assert (mixed_products(optimized(model.SerializeToString(), tmp_path))[1] == []) is (name in UNMIXED)
    for run in (given, given.plain):
        compare_with_numpy(run.run(inputs), name)


def compare_with_numpy(found: dict[str, Any], name: str) -> None:
    """Integers must be equal. Codes of rounded products may differ by one, and floats by rounding."""
    _, inputs = CASES[name]
    exact = ReferenceEvaluator(CASES[WRITTEN_OUT.get(name, name)][0])
    for (output, value), wanted in zip(found.items(), exact.run(None, inputs), strict=True):
        assert value.dtype == wanted.dtype and value.shape == wanted.shape, output
        if value.dtype == np.int32:
            np.testing.assert_array_equal(value, wanted)
        elif value.dtype == np.float32:
            np.testing.assert_allclose(value, wanted, rtol=2e-6, atol=1e-6)
        else:
            assert np.abs(value.astype(int) - wanted.astype(int)).max() <= 1


def test_what_has_no_codes_is_not_rewritten(saturating: None) -> None:
    model = parse_model(f"{HEADER} m (float[2] x) => (float[2] y) {{ y = Neg (x) }}")
    given = Reference(model)
    assert given.note == "" and given.source == model.SerializeToString()


GEMM = """m (uint8[5, 40] a) => (uint8[5, 6] y, float[5, 6] other) {
    af = DequantizeLinear (a, p, u)
    bf = DequantizeLinear (b, q)
    cf = DequantizeLinear (c, r)
    z = Gemm (af, bf, cf)
    y = QuantizeLinear (z, r, u)
    other = {other}
}"""


@pytest.mark.parametrize(("other", "is_rewritten"), [("Identity (z)", False), ("MatMul (af, bf)", True)])
def test_a_gemm_that_onnxruntime_does_not_fuse_stays_so(
    other: str, is_rewritten: bool, tmp_path: Path, saturating: None
) -> None:
    text = GEMM.replace("{other}", other)
    model = model_of(text, b=B, p=SCALE, q=SCALE, c=np.arange(6, dtype=np.int32), r=STEP, u=U)
    given = Reference(model)
    assert bool(given.note) is is_rewritten
    wanted = ReferenceEvaluator(model).run(None, {"a": A})
    for form in (given, given.plain):
        codes, numbers = form.run({"a": A}).values()
        np.testing.assert_array_equal(codes, wanted[0])
        np.testing.assert_allclose(numbers, wanted[1], atol=2e-5)


def test_blocks_stay_as_they_are(saturating: None) -> None:
    model = model_of(
        """m (float[5, 40] a) => (float[5, 6] y) {
            ac = QuantizeLinear <axis = 1, block_size = 8, output_dtype = 3> (a, p)
            af = DequantizeLinear <axis = 1, block_size = 8> (ac, p)
            y = MatMul (af, w)
        }""",
        p=np.full((5, 5), 0.02, np.float32), w=RANDOM.standard_normal((40, 6)).astype(np.float32),
    )  # fmt: skip
    given = Reference(model)
    assert given.note == ""
    [wanted] = ReferenceEvaluator(model).run(None, {"a": NUMBERS})
    np.testing.assert_allclose(given.run({"a": NUMBERS})["y"], wanted, rtol=1e-5, atol=1e-5)


def test_new_names_capture_none(saturating: None) -> None:
    model = model_of(
        """m (bool c, uint8[5, 40] a, int8[40, 6] unsigned_0) => (int32[5, 6] y) {
            unsigned_1 = MatMulInteger (a, unsigned_0)
            y = If (c) <
                then_branch = t () => (int32[5, 6] yt) {
                    unsigned_2 = MatMulInteger (a, unsigned_0, u, s)
                    yt = Add (unsigned_1, unsigned_2)
                },
                else_branch = e () => (int32[5, 6] ye) { ye = Identity (unsigned_1) }
            >
        }""",
        u=U, s=S,
    )  # fmt: skip
    given = Reference(model)
    assert "rewritten" in given.note
    a, b = A.astype(np.int32), B.astype(np.int32)
    found = given.run({"c": np.array(True), "a": A, "unsigned_0": B})["y"]
    np.testing.assert_array_equal(found, a @ b + (a - np.int32(U)) @ (b - np.int32(S)))


def test_a_function_is_inlined(saturating: None) -> None:
    text = f"""{HEADER} m (uint8[5, 40] a, int8[40, 6] b) => (int32[5, 6] y) {{ y = local.product (a, b) }}
    <domain: "local", opset_import: ["" : 21]> product (a, b) => (y) {{ y = MatMulInteger (a, b) }}"""
    model = parse_model(text.replace('"com.microsoft" : 1', '"local" : 1'))
    found = Reference(model).run({"a": A, "b": B})["y"]
    np.testing.assert_array_equal(found, A.astype(np.int32) @ B.astype(np.int32))


OTHER_OPSET = f"""{HEADER} m (uint8[5, 40] a, int8[40, 6] b) => (int32[5, 6] y) {{ y = local.product (a, b) }}
<domain: "local", opset_import: ["" : 13]> product (a, b) => (y) {{ y = MatMulInteger (a, b) }}"""


def test_a_function_without_codes_stays_onnxruntimes(saturating: None) -> None:
    text = OTHER_OPSET.replace("MatMulInteger (a, b)", "Neg (a)").replace('"com.microsoft" : 1', '"local" : 1')
    text = text.replace("uint8[5, 40] a, int8[40, 6] b", "float[2] a, float[2] b").replace(
        "int32[5, 6] y", "float[2] y"
    )
    given = Reference(parse_model(text))
    assert given.note == ""
    assert given.run({"a": np.array([1, 2], np.float32), "b": np.zeros(2, np.float32)})["y"].tolist() == [-1, -2]


def test_numpy_computes_products_that_cannot_be_rewritten(saturating: None) -> None:
    given = Reference(parse_model(OTHER_OPSET.replace('"com.microsoft" : 1', '"local" : 1')))
    assert given.note.startswith("NumPy runs the model instead of onnxruntime") and "opset 13" in given.note
    np.testing.assert_array_equal(given.run({"a": A, "b": B})["y"], A.astype(np.int32) @ B.astype(np.int32))


def test_onnxruntime_fuses_nothing_that_cannot_be_rewritten(monkeypatch: pytest.MonkeyPatch, saturating: None) -> None:
    def refuse(_: Any) -> int:
        raise CompileError([])

    monkeypatch.setattr(unsigned, "make_unsigned", refuse)
    model, inputs = CASES["Conv between codes"]
    given = Reference(model)
    assert given.note.startswith("onnxruntime runs without optimizations")
    compare_with_numpy(given.run(inputs), "Conv between codes")


def test_a_model_that_onnxruntime_refuses_is_refused_on_every_processor(saturating: None) -> None:
    model = parse_model(f"{HEADER} m (uint8[5, 40] a) => (int32[5, 6] y) {{ y = MatMulInteger (a, b) }}")
    with pytest.raises(reference.ReferenceFailed, match="refuses the model"):
        Reference(model)


def test_timing_runs_the_model_as_it_is_written(saturating: None) -> None:
    model, _ = CASES["QLinearConv"]
    given = Reference(model, as_written=True)
    assert given.note == "" and given.source == model.SerializeToString()


def test_the_report_says_so_in_one_line(saturating: None) -> None:
    model, inputs = CASES["Conv between codes"]
    report = compiler.verify(model, inputs=inputs)
    assert report.equal
    assert report.note == (
        "onnxruntime runs with uint8 instead of int8 codes (1 rewritten): "
        "onnxruntime's products of uint8 and int8 saturate on this processor, which has no VNNI"
    )


def test_rewriting_twice_changes_nothing() -> None:
    for model, _ in CASES.values():
        loaded = load_model(model).model
        assert make_unsigned(loaded) > 0
        assert make_unsigned(loaded) == 0
