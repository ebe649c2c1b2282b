import numpy as np
import onnx
import pytest

import compiler
from tests.scratch.row import rows

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
HAS_WINDOWS = "left_window_size" in onnx.defs.get_schema("Attention").attributes
needs_windows = pytest.mark.skipif(not HAS_WINDOWS, reason="the onnx package lacks Attention's windows")


def normal(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def heads_apart(x, heads):
    """`[N, L, heads · D]` → `[N, heads, L, D]`."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def allowed(shape, *, mask=None, past=0, nonpad=None, causal=False, left=-1, right=-1):
    """The mask that is added to the scores, by the operator's specification: −∞ for keys that a query does not see."""
    batch, _, queries, keys = shape
    added = np.zeros(shape)
    if mask is not None:
        added[..., mask.shape[-1] :] = -np.inf
        added[..., : mask.shape[-1]] += np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
    for n in range(batch):
        offset = past if nonpad is None else int(nonpad[n]) - queries
        position, key = np.arange(queries)[:, None] + offset, np.arange(keys)
        unseen = np.zeros((queries, keys), bool)
        unseen |= bool(causal) & (key > position)
        unseen |= (left >= 0) & (key < position - left)
        unseen |= (right >= 0) & (key > position + right)
        unseen |= key >= (keys if nonpad is None else nonpad[n])
        added[n, :, unseen] = -np.inf
    return added


def attend(q, k, v, *, scale=None, softcap=0.0, **seen):
    """The output and the scores after each stage, in float64, of four-dimensional inputs."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    product = q @ k.swapaxes(2, 3) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    capped = softcap * np.tanh(product / softcap) if softcap else product
    added = allowed(product.shape, **seen)
    masked = capped + added
    blind = np.isneginf(added).all(-1, keepdims=True)
    weights = np.exp(masked - np.where(blind, 0, masked.max(-1, keepdims=True)))
    weights = np.where(blind, 0, weights / np.where(blind, 1, weights.sum(-1, keepdims=True)))
    return weights @ v, [product, capped, masked, weights]


Q, K, V = normal(2, 4, 3, 8), normal(2, 4, 6, 8, seed=1), normal(2, 4, 6, 5, seed=2)
FEW_K, FEW_V = K[:, :2], V[:, :2]
CHOSEN = np.random.default_rng(3).integers(0, 2, (2, 1, 3, 6)).astype(bool)
ADDED = normal(2, 1, 3, 6, seed=4)
FLOATING = [Q, K, V, ADDED]


@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"is_causal": 1}])
def test_attributes(check_node, heads, attributes):
    k, v = K[:, :heads], V[:, :heads]
    named = {("causal" if name == "is_causal" else name): value for name, value in attributes.items()}
    expected, _ = attend(Q, k, v, **named)
    check_node("Attention", [Q, k, v], opset=23, attributes=attributes, expected=[expected.astype("float32")], **CLOSE)


@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"is_causal": 1}])
@pytest.mark.parametrize("mask", [None, CHOSEN, ADDED, ADDED[0, 0]], ids=["none", "chosen", "added", "of two axes"])
def test_like_onnxruntime(check_node, attributes, mask):
    q = k = normal(2, 4, 6, 8)
    if mask is not None:
        mask = np.concatenate([mask, mask], axis=-2)
        mask[..., 0] = 1  # a query that sees no key is another test
    check_node("Attention", [q, k, normal(2, 4, 6, 5, seed=2), mask], opset=23, attributes=attributes, **CLOSE)


MASKS = {
    "chosen": CHOSEN,
    "added": ADDED,
    "of keys": ADDED[0, 0, 0],
    "of queries and keys": CHOSEN[0, 0],
    "of heads": normal(4, 1, 6),
    "shorter": ADDED[..., :4],
    "shorter, chosen": CHOSEN[..., :4],
    "without a key": np.zeros((3, 6), bool),
    "of minus infinity": np.full((3, 6), -np.inf, "float32"),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks(check_node, mask, causal):
    expected, _ = attend(Q, K, V, mask=mask, causal=causal)
    attributes = {"is_causal": int(causal)}
    expected = [expected.astype("float32")]
    check_node("Attention", [Q, K, V, mask], opset=23, attributes=attributes, expected=expected, **CLOSE)


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_heads_in_the_last_dimension(check_node, kv_heads):
    q, k, v = normal(2, 3, 32), normal(2, 6, 8 * kv_heads, seed=1), normal(2, 6, 5 * kv_heads, seed=2)
    y, _ = attend(heads_apart(q, 4), heads_apart(k, kv_heads), heads_apart(v, kv_heads), mask=ADDED)
    expected = y.transpose(0, 2, 1, 3).reshape(2, 3, 20).astype("float32")
    attributes = {"q_num_heads": 4, "kv_num_heads": kv_heads}
    check_node("Attention", [q, k, v, ADDED], opset=23, attributes=attributes, expected=[expected], **CLOSE)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_past(check_node, folded, causal):
    old_k, old_v = normal(2, 2, 3, 8, seed=5), normal(2, 2, 3, 5, seed=6)
    all_k, all_v = (np.concatenate(pair, axis=2) for pair in ((old_k, FEW_K), (old_v, FEW_V)))
    y, _ = attend(Q, all_k, all_v, past=3, causal=causal)
    attributes, new = {"is_causal": int(causal)}, [Q, FEW_K, FEW_V]
    if folded:
        attributes |= {"q_num_heads": 4, "kv_num_heads": 2}
        *new, y = (x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (*new, y))
    inputs = [*new, None, old_k, old_v]
    expected = [y.astype("float32"), all_k, all_v]
    check_node("Attention", inputs, opset=23, outputs=3, attributes=attributes, expected=expected, **CLOSE)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_scores(check_node, mode, softcap):
    y, stages = attend(Q, K, V, mask=CHOSEN, softcap=softcap, causal=True)
    attributes = {"qk_matmul_output_mode": mode, "softcap": softcap, "is_causal": 1}
    expected = [x.astype("float32") for x in (y, stages[mode])]
    outputs = [True, False, False, True]
    inputs = [Q, K, V, CHOSEN]
    check_node("Attention", inputs, opset=23, outputs=outputs, attributes=attributes, expected=expected, **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("nonpad", [(6, 6), (5, 2), (0, 3)])
@pytest.mark.parametrize("mask", [None, CHOSEN, ADDED[..., :5]], ids=["none", "chosen", "shorter"])
def test_nonpad(check_node, nonpad, mask, causal):
    nonpad = np.array(nonpad)
    expected, _ = attend(Q, K, V, nonpad=nonpad, mask=mask, causal=causal)
    expected = [expected.astype("float32")]
    inputs = [Q, K, V, mask, None, None, nonpad]
    attributes = {"is_causal": int(causal)}
    check_node("Attention", inputs, opset=24, attributes=attributes, expected=expected, **CLOSE)


@needs_windows
@pytest.mark.parametrize("window", [(0, 0), (1, -1), (-1, 2), (2, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_windows(check_node, window, causal):
    left, right = window
    expected, _ = attend(Q, K, V, left=left, right=right, causal=causal)
    expected = [expected.astype("float32")]
    attributes = {"left_window_size": left, "right_window_size": right, "is_causal": int(causal)}
    check_node("Attention", [Q, K, V], opset=25, attributes=attributes, expected=expected, **CLOSE)


@pytest.mark.parametrize(
    ("dtype", "tolerance", "precision"),
    [
        ("float64", 1e-12, None),
        ("float64", 1e-12, 11),
        *[("float16", 1e-3, precision) for precision in (None, 1, 10, 11)],
    ],
)
def test_types(check_node, dtype, tolerance, precision):
    inputs = [x.astype(dtype) for x in (Q, K, V, ADDED)]
    y, _ = attend(*inputs[:3], mask=inputs[3].astype(np.float64))
    attributes = {"softmax_precision": precision} if precision else {}
    expected = [y.astype(dtype)]
    rounding = {"rtol": tolerance, "atol": tolerance}
    check_node("Attention", inputs, opset=23, attributes=attributes, expected=expected, **rounding)


def test_values_of_another_type(check_node):
    y, _ = attend(Q, K, V)
    inputs = [Q, K, V.astype(np.float64)]
    check_node("Attention", inputs, opset=23, expected=[y.astype("float32")], **CLOSE)


def test_masks_of_numbers(check_node):
    mask = np.arange(18).reshape(3, 6) % 5
    y, _ = attend(Q, K, V, mask=mask)
    for dtype in ("int64", "uint8", "float64"):
        inputs = [Q, K, V, mask.astype(dtype)]
        check_node("Attention", inputs, opset=23, expected=[y.astype("float32")], **CLOSE)


REFUSED = {
    "Attention of float32 cannot compute in float16": ([Q, K, V], {"softmax_precision": 10}),
    "Attention of float32 cannot compute in bfloat16": ([Q, K, V], {"softmax_precision": 16}),
    "Attention of float32 cannot compute in int64": ([Q, K, V], {"softmax_precision": 7}),
    "no qk_matmul_output_mode 4": ([Q, K, V], {"qk_matmul_output_mode": 4}),
    "needs q_num_heads and kv_num_heads": ([Q[0], K[0], V[0]], {}),
    "left_window_size -2": ([Q, K, V], {"left_window_size": -2}),
    "K must have 4 dimensions": ([Q, K[0], V], {}),
    "K is float64": ([Q, K.astype(np.float64), V], {}),
    "past_key and nonpad_kv_seqlen": ([Q, K, V, None, K, V, np.array([1, 1])], {}),
}


@pytest.mark.parametrize(
    "reason",
    [pytest.param(each, marks=needs_windows) if each.startswith("left_window") else each for each in REFUSED],
)
def test_refused(node_model, reason):
    inputs, attributes = REFUSED[reason]
    model = node_model("Attention", inputs, opset=25, attributes=attributes)
    model.graph.output[0].type.tensor_type.elem_type = 1
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(model)


def turned(x, cos, sin, *, interleaved, size):
    """Pairs as complex numbers, turned by `cos + i · sin`; x `[N, heads, L, D]`, caches `[N, L, size / 2]`."""
    turn = (cos + 1j * sin)[:, None]
    part = x[..., :size].astype(np.float64)
    pairs = (
        part[..., 0::2] + 1j * part[..., 1::2] if interleaved else part[..., : size // 2] + 1j * part[..., size // 2 :]
    )
    pairs = pairs * turn
    both = [pairs.real, pairs.imag]
    done = np.stack(both, axis=-1).reshape(part.shape) if interleaved else np.concatenate(both, axis=-1)
    return np.concatenate([done, x[..., size:]], axis=-1).astype(x.dtype)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [8, 4])
def test_rotary_embedding(check_node, folded, with_positions, interleaved, size):
    x, angles = normal(2, 3, 5, 8), normal(7, size // 2, seed=1)
    positions = np.random.default_rng(2).integers(0, 7, (2, 5))
    cos, sin = np.cos(angles), np.sin(angles)
    expected = turned(x, cos[positions], sin[positions], interleaved=interleaved, size=size)
    caches = [cos, sin, positions] if with_positions else [cos[positions], sin[positions]]
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": size % 8}
    if folded:
        x, expected = (value.transpose(0, 2, 1, 3).reshape(2, 5, 24) for value in (x, expected))
        attributes["num_heads"] = 3
    inputs = [x, *caches]
    check_node("RotaryEmbedding", inputs, opset=23, attributes=attributes, expected=[expected], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_rotary_embedding_types(check_node, dtype, tolerance):
    x, angles = normal(2, 3, 5, 8, dtype=dtype), normal(2, 5, 4)
    cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    expected = turned(x, cos.astype(np.float64), sin.astype(np.float64), interleaved=0, size=8)
    inputs = [x, cos, sin]
    check_node("RotaryEmbedding", inputs, opset=23, expected=[expected], rtol=tolerance, atol=tolerance)


HEADS = "T[1, 4, k, 64] x, T[1, 4, k, 64] z"

SCRATCH = [
    *rows(
        "float float16",
        f"{HEADS}, T[1, 4, k, 64] v",
        "y = OP(x, z, v)",
        "Attention ai.onnx.preview.FlexAttention",
        k=2000,
    ),
    *rows("float float16", f"{HEADS}, T[1, 4, 9, 64] v", "y, e, f, g = Attention(x, z, z, , v, v)", k=1500),
    *rows(
        "float float16",
        "T[1, 8, k, 64] x, T[k, 32] a, T[k, 32] b, int64[1, k] z",
        "y = RotaryEmbedding(x, a, b, z)",
        k=8000,
    ),
]
