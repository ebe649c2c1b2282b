"""The node MatMulNBits of `candle.plan` against a product in double precision."""

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.scratch.row import rows

RANDOM = np.random.default_rng(3)
N, K, BLOCK, BLOCKS = 7, 90, 32, 3


def codes_of(packed, bits):
    """The codes of bytes, the low bits first."""
    parts = (packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8)) & ((1 << bits) - 1)
    return parts.reshape(N, -1)[:, :K].astype(np.float64)


def model_of(shapes, bits, *, epilogue=False):
    inputs = ", ".join(f"{kind}{list(shape)} {name}" for name, (kind, shape) in shapes.items())
    names = [name if name in shapes else "" for name in ("x", "b", "s", "z")]
    kind, (*rows, _) = shapes["x"]
    return onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "candle.plan" : 1]>
        agraph ({inputs}) => ({kind}{[*rows, N]} y) <{kind}{[*rows, N]} c> {{
            c = candle.plan.MatMulNBits <K = {K}, N = {N}, bits = {bits}, block_size = {BLOCK}> ({", ".join(names)})
            y = {"Relu" if epilogue else "Identity"}(c)
        }}
    """)


def feeds_of(bits, zeros, rows=(2, 3)):
    feeds = {
        "x": RANDOM.standard_normal((*rows, K)).astype(np.float32),
        "b": RANDOM.integers(0, 256, (N, BLOCKS, BLOCK * bits // 8), np.uint8),
        "s": (RANDOM.random((N, BLOCKS)) * 0.1).astype(np.float32),
    }
    if zeros == "codes":
        feeds["z"] = RANDOM.integers(0, 1 << bits, (N, BLOCKS), np.uint8)
    elif zeros == "numbers":
        feeds["z"] = RANDOM.standard_normal((N, BLOCKS)).astype(np.float32)
    return feeds


KINDS = {np.dtype(np.float32): "float", np.dtype(np.uint8): "uint8"}


def shapes_of(feeds):
    return {name: (KINDS[array.dtype], array.shape) for name, array in feeds.items()}


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("zeros", [None, "codes", "numbers"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_products(bits, zeros, epilogue, constant):
    feeds = feeds_of(bits, zeros)
    model = model_of(shapes_of(feeds), bits, epilogue=epilogue)
    blocks = np.arange(K) // BLOCK
    points = feeds["z"].astype(np.float64)[:, blocks] if zeros else 1 << (bits - 1)
    weights = (codes_of(feeds["b"], bits) - points) * feeds["s"].astype(np.float64)[:, blocks]
    expected = feeds["x"] @ weights.T
    if constant:
        for name in [name for name in feeds if name != "x"]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop(name), name))
        del model.graph.input[1:]
    plan = compiler.compile(model)
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]] == ["MatMulNBits"]
    found = compiler.load(plan, threads=1).run(feeds)["y"]
    np.testing.assert_allclose(found, np.maximum(expected, 0) if epilogue else expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("x", np.zeros((2, 89), np.float32), "its last size must be 90"),
        ("b", np.zeros((N, BLOCKS, 15), np.uint8), r"it must be \[7, 3, 16\]"),
        ("s", np.zeros((N, 2), np.float32), r"the scale has shape \[7, 2\]; it must be \[7, 3\]"),
        ("z", np.zeros((N,), np.uint8), r"the zero point has shape \[7\]"),
        ("z", np.zeros((N, BLOCKS), np.int8), "the zero point is int8"),
    ],
)
def test_refused(name, array, reason):
    shapes = shapes_of({**feeds_of(4, "codes"), name: array} if array.dtype != np.int8 else feeds_of(4, "codes"))
    if array.dtype == np.int8:
        shapes[name] = ("int8", array.shape)
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(model_of(shapes, 4))


SCRATCH = [
    *(
        row
        for sizes in ({"n": 4}, {"n": 1024})
        for constants in ("", "w a b")
        for row in rows(
            "float uint8",
            "float[n, 2048] x, uint8[2048, 64, 16] w, float[2048, 64] a, T[2048, 64] b",
            "y = candle.plan.MatMulNBits<K = 2048, N = 2048, bits = 4, block_size = 32>(x, w, a, b)",
            constants=constants,
            **sizes,
        )
    ),
]
