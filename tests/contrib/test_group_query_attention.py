from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, integers, normal

OP = "GroupQueryAttention"
HEADS = {"num_heads": 4, "kv_num_heads": 2}
COS, SIN = normal(16, 8), normal(16, 8, seed=1)
PRESENT = (True, True, True)
SIZES = {0: "B S _", 1: "B S _", 2: "B S _", 3: "B _ P _", 4: "B _ P _", 5: "B"}


def inputs(
    rows: int,
    held: int | None,
    lengths: list[int],
    total: int,
    *,
    dtype: Any = np.float32,
    packed: bool = False,
    empty: bool = False,
) -> list[Array | None]:
    """Q, K, V of `rows` positions, and `held` past keys. Row b has `lengths[b]` keys; the new keys come last.

    If K and V are `empty`, the past keys include those of the queries.
    """
    batch = len(lengths)
    qkv: list[Array | None] = [normal(batch, rows, width, dtype=dtype, seed=width) for width in (64, 32, 33)]
    qkv[2] = normal(batch, rows, 32, dtype=dtype, seed=3)
    if packed:
        qkv = [np.concatenate([part for part in qkv if part is not None], axis=2), None, None]
    if empty:
        qkv[1:] = [np.zeros((batch, 0, 32), dtype) for _ in range(2)]
    past = [None] * 2 if held is None else [normal(batch, 2, held, 16, dtype=dtype, seed=seed) for seed in (4, 5)]
    return [*qkv, *past, np.int32([length - 1 for length in lengths]), np.array(total, np.int32)]


def given(name: str, *arguments: Any, more: tuple[Array | None, ...] = (), **options: Any) -> Any:
    kept = {key: options.pop(key) for key in ("dtype", "packed", "empty") if key in options}
    sizes = {**SIZES, 1: "B _ _", 2: "B _ _"} if kept.get("empty") else SIZES
    dims = {at: names for at, names in sizes.items() if (found := inputs(*arguments, **kept))[at] is not None}
    if found[3] is None:
        dims = {at: names for at, names in dims.items() if at < 3}
    dims |= options.pop("more_dims", {})
    fields = {"outputs": PRESENT, "dims": dims, **HEADS, **options}
    return case(OP, *found, *more, name=name, **fields)


ROTARY = (COS, SIN)
NO_ROTARY = (None, None)
STEP, SHARED = (1, 4, [5, 5], 5), (1, 9, [5, 3], 5)
PROMPT, CHUNK = (4, 0, [4, 4], 4), (3, 5, [8], 8)
BIAS, LONG_BIAS, CHUNK_BIAS = normal(2, 4, 1, 5), normal(2, 4, 4, 4), normal(1, 4, 3, 5)
HALF_TERMS = (*NO_ROTARY, None, BIAS.astype(np.float16), normal(4, dtype=np.float16))
PLACES = np.array([[0, 1, 2, 3], [3, 4, 5, 6]])


def quantized(name: str, *arguments: Any, bits: int = 8, is_list: bool = False, **options: Any) -> Any:
    """A case whose cache holds codes of 8 or 4 bits."""
    size, kind, low = (16, np.int8, -128) if bits == 8 else (8, np.uint8, 0)
    kept = {key: options.pop(key) for key in ("dtype", "packed", "empty") if key in options}
    found = inputs(*arguments, **kept)
    codes = [integers(low, low + 256, *found[3].shape[:3], size, dtype=kind, seed=seed) for seed in (1, 2)]
    step = np.float32(1.5 / (1 << (bits - 1)))
    scales = [step * (1 + np.abs(normal(1, 2, 1, 16, seed=seed))) if is_list else np.array([step]) for seed in (1, 2)]
    more = [*options.pop("more", ()), *[None] * 5][:5]
    form = "PER_CHANNEL" if is_list else "PER_TENSOR"
    fields = {"kv_cache_bit_width": bits, "k_quant_type": form, "v_quant_type": form, "outputs": PRESENT, **HEADS}
    dims = {0: "B S _", 3: "B _ P _", 4: "B _ P _", 5: "B"}
    return case(OP, *found[:3], *codes, *found[5:], *more, *scales, name=name, **{"dims": dims, **fields, **options})


CASES = [
    given("prompt", *PROMPT),
    given("prompt without past", 4, None, [4, 4], 4),
    given("padded prompt", 4, 0, [4, 2], 4),
    given("prompt in a shared buffer", 4, 9, [4, 4], 4),
    given("padded prompt in a shared buffer", 4, 9, [4, 2], 4),
    given("step", *STEP),
    given("step of rows of other lengths", 1, 4, [5, 3], 5),
    given("step in a shared buffer", *SHARED),
    given("chunk", *CHUNK),
    given("chunk in a shared buffer", 3, 12, [8], 8),
    given("step of a shared cache", 1, 7, [7, 7], 7, empty=True),
    given("step of a shared cache with other lengths", 1, 7, [7, 4], 7, empty=True),
    given("step of a shared cache in a buffer", 1, 9, [7, 4], 7, empty=True),
    given("chunk of a shared cache", 3, 7, [7], 7, empty=True),
    given("prompt of a shared cache", 5, 5, [5, 5], 5, empty=True),
    given("padded prompt of a shared cache", 5, 5, [5, 3], 5, empty=True),
    given("rotated queries of a shared cache", 1, 7, [7, 4], 7, empty=True, more=ROTARY, do_rotary=1),
    given("window of a shared cache", 1, 7, [7, 4], 7, empty=True, local_window_size=3),
    given("float16 of a shared cache", 1, 7, [7, 4], 7, empty=True, dtype=np.float16, **HALF),
    given("packed prompt", *PROMPT, packed=True),
    given("packed step", *STEP, packed=True),
    given("scale", *STEP, scale=0.3),
    given("softcap", *STEP, softcap=1.5),
    given("softcap of a prompt", *PROMPT, softcap=1.5),
    given("window", *STEP, local_window_size=2),
    given("window of a prompt", *PROMPT, local_window_size=2),
    given("window of a padded prompt", 4, 0, [4, 2], 4, local_window_size=2),
    given("window of a padded prompt, softcap", 4, 0, [4, 2], 4, local_window_size=2, softcap=2.0),
    given("window of a padded prompt, smooth", 4, 0, [4, 2], 4, local_window_size=2, smooth_softmax=1),
    given("window of a padded prompt, float16", 4, 0, [4, 2], 4, local_window_size=2, dtype=np.float16, **HALF),
    given("window of a padded prompt, weights", 4, 0, [4, 2], 4, local_window_size=2, qk_output=2, outputs=(True,) * 4),
    given("wide window", *PROMPT, local_window_size=100),
    given("rotary prompt", *PROMPT, more=ROTARY, do_rotary=1),
    given("rotary prompt without past", 4, None, [4, 4], 4, more=ROTARY, do_rotary=1),
    given("rotary step", *STEP, more=ROTARY, do_rotary=1),
    given("rotary step in a shared buffer", *SHARED, more=ROTARY, do_rotary=1),
    given("rotary chunk", *CHUNK, more=ROTARY, do_rotary=1),
    given("interleaved rotary", *CHUNK, more=ROTARY, do_rotary=1, rotary_interleaved=1),
    given("packed rotary", *STEP, more=ROTARY, do_rotary=1, packed=True),
    given("rotary positions", *STEP, more=(*ROTARY, np.array([[7], [2]])), do_rotary=1, more_dims={9: "B S"}),
    given("smooth", *STEP, smooth_softmax=1),
    given("smooth prompt", *PROMPT, smooth_softmax=1),
    given("not smooth", *PROMPT, smooth_softmax=0),
    given("sink", *STEP, more=(*NO_ROTARY, None, None, normal(4))),
    given("sink, window, softcap", *PROMPT, more=(*NO_ROTARY, None, None, normal(4)), local_window_size=2, softcap=2.0),
    given("bias", *STEP, more=(*NO_ROTARY, None, BIAS), more_dims={10: "B _ S T"}),
    given("broadcast bias", *STEP, more=(*NO_ROTARY, None, BIAS[:1, :1]), more_dims={10: "_ _ S T"}),
    given("bias in a shared buffer", *SHARED, more=(*NO_ROTARY, None, BIAS), more_dims={10: "B _ S T"}),
    given("bias and sink in a shared buffer", *SHARED, more=(*NO_ROTARY, None, BIAS, normal(4))),
    given("bias of heads and a window", *STEP, more=(*NO_ROTARY, None, BIAS[:1]), local_window_size=2),
    given("bias of a batch and softcap", *STEP, more=(*NO_ROTARY, None, BIAS[:, :1]), softcap=1.5),
    given("bias of a padded prompt", 4, 0, [4, 2], 4, more=(*NO_ROTARY, None, LONG_BIAS)),
    given("bias of a chunk that is not causal", 3, 2, [5], 5, more=(*NO_ROTARY, None, CHUNK_BIAS), causal=0),
    given("sink of a padded prompt", 4, 0, [4, 2], 4, more=(*NO_ROTARY, None, None, normal(4))),
    given("float16 bias and sink", *STEP, dtype=np.float16, more=HALF_TERMS, **HALF),
    given("float16 smooth softcap", *PROMPT, dtype=np.float16, smooth_softmax=1, softcap=2.0, **HALF),
    given("scale 0", *STEP, scale=0.0),
    given("negative scale", *STEP, scale=-0.5),
    given("softcap 0", *STEP, softcap=0.0),
    given("one token", 1, 0, [1, 1], 1),
    given("one token in a shared buffer", 1, 6, [1, 1], 1),
    given("prompt of a row with one token", 4, 0, [4, 1], 4),
    given("window of one key", *STEP, local_window_size=1),
    given("window of a step in a shared buffer", *SHARED, local_window_size=2),
    given("window of a chunk", *CHUNK, local_window_size=2),
    given("rotary padded prompt", 4, 0, [4, 2], 4, more=ROTARY, do_rotary=1),
    given("rotary step of rows of other lengths", 1, 4, [5, 3], 5, more=ROTARY, do_rotary=1),
    given("tables without rotary", *STEP, more=ROTARY),
    given("rotary positions of a prompt", *PROMPT, more=(*ROTARY, PLACES), do_rotary=1, more_dims={9: "B S"}),
    given("rotary positions of a chunk", *CHUNK, more=(*ROTARY, np.array([[5, 9, 11]])), do_rotary=1),
    given("rotary positions of one token", 1, 0, [1, 1], 1, more=(*ROTARY, np.array([[3], [7]])), do_rotary=1),
    given("scores of a padded prompt", 4, 0, [4, 2], 4, qk_output=1, outputs=(True, True, True, True)),
    given("weights of a window", *CHUNK, qk_output=2, local_window_size=2, outputs=(True, True, True, True)),
    given("without the present", *PROMPT, outputs=(True,)),
    given(
        "float16 prompt",
        *PROMPT,
        dtype=np.float16,
        more=tuple(x.astype(np.float16) for x in ROTARY),
        do_rotary=1,
        **HALF,
    ),
    given("float16 step", *STEP, dtype=np.float16, **HALF),
    given("not causal", *CHUNK, causal=0),
    given("padded prompt that is not causal", 4, 0, [4, 2], 4, causal=0),
    given("scores", *CHUNK, qk_output=1, softcap=2.0, outputs=(True, True, True, True)),
    given("weights", *CHUNK, qk_output=2, outputs=(True, True, True, True)),
    given("scores in a shared buffer", *SHARED, qk_output=1, outputs=(True, True, True, True)),
    given("smooth weights", *STEP, qk_output=2, smooth_softmax=1, outputs=(True, True, True, True)),
    quantized("codes", *STEP),
    quantized("codes of channels", *STEP, is_list=True),
    quantized("codes in a shared buffer", *SHARED),
    quantized("codes of 4 bits", *STEP, bits=4),
    quantized("codes of 4 bits of channels in a shared buffer", *SHARED, bits=4, is_list=True),
    quantized("codes of a prompt", *PROMPT, is_list=True),
    quantized("codes of a padded prompt in a shared buffer", 4, 9, [4, 2], 4, bits=4),
    quantized("codes of a chunk and a window", *CHUNK, local_window_size=2),
    quantized("codes of a padded prompt and a window", 4, 0, [4, 2], 4, local_window_size=2),
    quantized("codes of a packed step", *STEP, packed=True, dims={}),
    quantized("codes of a rotary step", *STEP, more=ROTARY, do_rotary=1),
    quantized("codes of a smooth step", *SHARED, smooth_softmax=1, softcap=1.5),
    quantized("codes of a step with bias and sink", *STEP, more=(*NO_ROTARY, None, BIAS, normal(4)), bits=4),
    quantized("weights of codes", *SHARED, qk_output=2, outputs=(True,) * 4),
    quantized("codes of a chunk that is not causal", *CHUNK, causal=0),
    quantized("codes of a shared cache", 1, 7, [7, 4], 7, empty=True, dims={}),
    quantized("codes of float16", *STEP, dtype=np.float16, **HALF),
    quantized("codes of 4 bits of float16", *SHARED, bits=4, is_list=True, dtype=np.float16, **HALF),
    given(
        "named defaults",
        *STEP,
        causal=1,
        k_quant_type="NONE",
        v_quant_type="NONE",
        qk_norm_epsilon=0.5,
        q_norm_epsilon=0.5,
        k_norm_epsilon=0.5,
        qk_output=0,
    ),
]


@pytest.mark.parametrize("case_", CASES)
def test_equals_onnxruntime(case_: Case) -> None:
    check(case_)


def test_attributes_that_are_refused() -> None:
    for attributes in ({"causal": 0, "local_window_size": 2}, {"local_window_size": 0}, {"num_heads": 3}):
        with pytest.raises(CompileError, match=r"causal|local_window_size|heads"):
            compiler.compile(Case(OP, inputs(*STEP), {**HEADS, **attributes}, PRESENT).model())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"v_quant_type": "PER_CHANNEL"}, "k_quant_type PER_TENSOR and v_quant_type PER_CHANNEL"),
        ({"k_quant_type": "PER_ROW", "v_quant_type": "PER_ROW"}, "k_quant_type PER_ROW"),
        ({"k_quant_type": "NONE", "v_quant_type": "NONE"}, "with kv_cache_bit_width 8"),
        ({"kv_cache_bit_width": 2}, "kv_cache_bit_width is 2"),
        ({"kv_cache_bit_width": 4}, "past_key has the element type int8"),
    ],
)
def test_codes_that_are_refused(changed: dict[str, Any], reason: str) -> None:
    plain: Case = quantized("codes", *STEP).values[0]
    with pytest.raises(CompileError, match=reason):
        compiler.compile(Case(OP, plain.inputs, {**plain.attributes, **changed}, PRESENT).model())


@pytest.mark.parametrize(("index", "name"), [(12, "k_scale"), (13, "v_scale"), (14, "q_norm_weight"), (15, "k_norm")])
def test_inputs_that_are_refused(index: int, name: str) -> None:
    more = [*inputs(*STEP), *[None] * (index - 7), normal(16)]
    with pytest.raises(CompileError, match=name):
        compiler.compile(Case(OP, more, dict(HEADS), PRESENT).model())


def test_a_past_with_other_heads_is_refused() -> None:
    found = [array if at not in (3, 4) or array is None else array[:, :1] for at, array in enumerate(inputs(*STEP))]
    with pytest.raises(CompileError, match="past_key has 1 heads"):
        compiler.compile(Case(OP, found, dict(HEADS), PRESENT).model())


def test_a_shared_cache_is_a_past() -> None:
    found = inputs(4, None, [4, 4], 4, empty=True)
    with pytest.raises(CompileError, match="needs past_key and past_value if its key and value are empty"):
        compiler.compile(Case(OP, found, HEADS).model())


def test_one_of_two_inputs_is_refused() -> None:
    for missing in (2, 4):
        found = inputs(*STEP)
        found[missing] = None
        with pytest.raises(CompileError, match="together"):
            compiler.compile(Case(OP, found, dict(HEADS), PRESENT).model())
