"""Compilations with the weights of a file: the tensor of each weight, blocks that stay quantized, and wrong files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

import compiler
from compiler import CompileError, Options
from compiler.rewrite.report import PassReport
from compiler.rewrite.stored.architectures import ARCHITECTURES
from compiler.rewrite.stored.file import WeightFile
from tests.gguf_files import KINDS, Stored, gguf, matrix, plain

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]

SHAPES = {
    "model.embed_tokens.weight": (40, 256),
    "model.layers.0.input_layernorm.weight": (256,),
    "model.layers.0.self_attn.q_proj.weight": (256, 256),
    "model.layers.0.self_attn.k_proj.weight": (256, 256),
    "model.layers.0.mlp.down_proj.weight": (64, 512),
    "model.layers.0.mlp.down_proj.bias": (64,),
    "model.norm.weight": (64,),
    "lm_head.weight": (40, 64),
}
"""The weights of the model in PyTorch, and their shapes."""
HEADS = {"q": 4, "k": 2}
METADATA: dict[str, str | int] = {
    "general.architecture": "llama",
    "llama.attention.head_count": HEADS["q"],
    "llama.attention.head_count_kv": HEADS["k"],
}
IDS = np.array([3, 1, 39, 5])


def computed(weights: Weights) -> Array:
    """The logits of the model."""
    table, norm, q, k, down, bias, last, head = (weights[name].astype(np.float64) for name in SHAPES)
    x = table[IDS] * norm
    hidden = np.concatenate([x @ q.T, x @ k.T], 1) @ down.T + bias
    return np.asarray(hidden * last @ head.T)


def model_of(dtype: type = np.float32, prefix: str = "") -> onnx.ModelProto:
    """The model as an exporter writes it: two matrices are transposed, and lost their names.

    The weights are zeros. `prefix` begins the names of all modules.
    """
    lost = {"model.layers.0.self_attn.q_proj.weight": "onnx::MatMul_7", "lm_head.weight": "val_12"}
    names = {name: lost.get(name, prefix + name) for name in SHAPES}
    table, norm, q, k, down, bias, last, head = names.values()
    steps = [
        ("Gather", [table, "ids"], "x", "model.embed_tokens", {}),
        ("Mul", ["x", norm], "n", "model.layers.0.input_layernorm", {}),
        ("MatMul", ["n", q], "q", "model.layers.0.self_attn.q_proj", {}),
        ("Transpose", [k], "kt", "model.layers.0.self_attn.k_proj", {"perm": [1, 0]}),
        ("MatMul", ["n", "kt"], "k", "model.layers.0.self_attn.k_proj", {}),
        ("Concat", ["q", "k"], "c", "model.layers.0.self_attn", {"axis": 1}),
        ("Gemm", ["c", down, bias], "d", "model.layers.0.mlp.down_proj", {"transB": 1}),
        ("Mul", ["d", last], "f", "model.norm", {}),
        ("MatMul", ["f", head], "logits", "lm_head", {}),
    ]
    nodes = []
    for kind, inputs, output, module, attributes in steps:
        path = "/".join(["", *(prefix + module).replace("layers.", "layers#").split("."), kind]).replace("#", ".")
        nodes.append(helper.make_node(kind, inputs, [output], path, **attributes))
    constants = [
        numpy_helper.from_array(np.zeros(shape[:: -1 if name in lost else 1], dtype), names[name])
        for name, shape in SHAPES.items()
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "decoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("logits", element, ["n", 40])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def interleaved(rows: Array, heads: int) -> Array:
    """The rows of queries or keys in llama.cpp's order (`LlamaModel.permute`)."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def stored(
    kind: str = "Q8_0", heads: dict[str, int] | None = None, shift: float = 0
) -> tuple[Weights, dict[str, Stored]]:
    """Weights, and their tensors with llama.cpp's names. Matrices have a type, if their rows consist of its blocks.

    With `heads`, the rows of queries and keys have llama.cpp's order. `shift` is added to weights of norms.
    """
    weights, tensors, convert = {}, {}, ARCHITECTURES["llama"]
    for seed, (name, shape) in enumerate(SHAPES.items()):
        tensor = convert.tensors_of(name)[0]
        if len(shape) == 1:
            weights[name] = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
            tensors[tensor] = plain(weights[name] + np.float32(shift * name.endswith("norm.weight")))
            continue
        made = matrix("Q8_0" if kind.endswith("K") and shape[1] % 256 else kind, *shape, seed=seed)
        count = (heads or {}).get(name.partition("_proj")[0][-1], 0) if "attn" in name else 0
        weights[name] = made.numbers
        tensors[tensor] = (made._replace(rows=interleaved(made.rows, count)) if count else made).stored()
    return weights, tensors


def compiled(
    path: Path, model: onnx.ModelProto | None = None, **options: Any
) -> tuple[compiler.Plan, list[PassReport]]:
    """The plan with the weights of a file, and the reports."""
    reports: list[PassReport] = []
    made = compiler.compile(model or model_of(), Options(weights=path, on_pass=reports.append, **options))
    return made, [each for each in reports if each.name in ("replace_weights", "keep_blocks")]


def assert_computes(plan: compiler.Plan, weights: Weights, tolerance: float = 1e-5) -> None:
    found, expected = compiler.load(plan, threads=1).run({"ids": IDS})["logits"], computed(weights)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def kinds_of(plan: compiler.Plan) -> list[str]:
    """The ops of the plan's products."""
    ops = [next(iter(step["op"])) for step in plan.document["main"]["steps"]]
    return sorted(op for op in ops if op in ("MatMul", "Gemm", "MatMulNBits"))


def test_only_a_transposed_matrix_is_dequantized_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, array = list[str](), WeightFile.array
    monkeypatch.setattr(WeightFile, "array", lambda file, name: (read.append(name), array(file, name))[1])
    path, (_, tensors) = tmp_path / "decoder.gguf", stored("Q4_K", HEADS)
    path.write_bytes(gguf(tensors, METADATA))
    compiled(path)
    assert sorted(read) == sorted([*tensors, "blk.0.attn_k.weight"])


PARTS = {"F32": 1.01, "F16": 1.01, "Q8_0": 0.31, "Q6_K": 0.35, "Q4_0": 0.19, "Q4_K": 0.23}
"""The type of the file → the largest size of the plan, as a part of the plan with floats."""


@pytest.mark.parametrize("kind", KINDS)
def test_products_compute_with_the_blocks_of_a_file(tmp_path: Path, kind: str) -> None:
    path, (weights, tensors) = tmp_path / "decoder.gguf", stored(kind, HEADS)
    path.write_bytes(gguf(tensors, METADATA))
    plan, (replaced, kept) = compiled(path)
    assert_computes(plan, weights)
    assert [each.note.split(", ")[0] for each in replaced.fired] == list(tensors)
    is_quantized = kind.startswith("Q")
    assert kinds_of(plan) == (["MatMulNBits"] * 4 if is_quantized else ["Gemm", *["MatMul"] * 3])
    assert len(kept.fired) == 5 * is_quantized, "four products and the table"
    assert {each.reason for each in kept.near_misses} == (
        set() if is_quantized else {"the file has no codes for these numbers"}
    )
    assert len(plan.data) <= PARTS[kind] * len(compiler.compile(model_of()).data)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_weights_get_the_dtype_of_the_model(tmp_path: Path, dtype: type) -> None:
    path, (weights, tensors) = tmp_path / "decoder.gguf", stored("Q8_0", HEADS)
    path.write_bytes(gguf(tensors, METADATA))
    plan, _ = compiled(path, model_of(dtype))
    assert_computes(plan, weights, 1e-2 if dtype == np.float16 else 1e-6)
    assert ("MatMulNBits" in kinds_of(plan)) == (dtype == np.float16)


@pytest.mark.parametrize(("architecture", "heads"), [("qwen2", None), ("llama", HEADS)])
def test_the_order_of_rows_is_undone(tmp_path: Path, architecture: str, heads: Any) -> None:
    path, (weights, tensors) = tmp_path / "decoder.gguf", stored("Q8_0", heads)
    path.write_bytes(gguf(tensors, {**METADATA, "general.architecture": architecture}))
    assert_computes(compiled(path)[0], weights)


@pytest.mark.parametrize("adds_one", [True, False])
def test_norms_of_gemma_are_larger_by_one(tmp_path: Path, adds_one: bool) -> None:
    """PyTorch adds 1 to the weights in each run. An exporter may have added it."""
    path, (weights, tensors), model = tmp_path / "decoder.gguf", stored("Q8_0", shift=1), model_of()
    path.write_bytes(gguf(tensors, {**METADATA, "general.architecture": "gemma"}))
    for name in [name for name in SHAPES if name.endswith("norm.weight")]:
        weights[name] = weights[name] + 1
        if adds_one:
            (reader,) = (node for node in model.graph.node if name in node.input)
            reader.input[1] = f"{name}.sum"
            model.graph.node.insert(0, helper.make_node("Add", ["one", name], [f"{name}.sum"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "one"))
    assert_computes(compiled(path, model)[0], weights)


def test_a_square_matrix_that_may_be_transposed_is_refused(tmp_path: Path) -> None:
    path, (_, tensors), model = tmp_path / "decoder.gguf", stored("Q8_0", HEADS), model_of()
    model.graph.node[2].op_type, model.graph.node[2].domain = "FusedMatMul", "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for constant in model.graph.initializer:
        constant.name = constant.name.replace("onnx::MatMul_7", "model.layers.0.self_attn.q_proj.weight")
    model.graph.node[2].input[1] = "model.layers.0.self_attn.q_proj.weight"
    path.write_bytes(gguf(tensors, METADATA))
    with pytest.raises(
        CompileError, match=r"'blk\.0\.attn_q\.weight': the nodes that read .* do not tell whether it is"
    ):
        compiled(path, model)


def test_embeddings_are_the_output_layer_too(tmp_path: Path) -> None:
    model, shapes = model_of(), dict(SHAPES)
    shapes["model.norm.weight"] = shapes["model.layers.0.mlp.down_proj.bias"] = (256,)
    path, (weights, tensors) = tmp_path / "decoder.gguf", stored("Q8_0", HEADS)
    wide = {"model.layers.0.mlp.down_proj.weight": matrix("Q8_0", 256, 512), "lm_head.weight": matrix("Q8_0", 40, 256)}
    for name, made in wide.items():
        weights[name] = made.numbers
    for name in ("model.norm.weight", "model.layers.0.mlp.down_proj.bias"):
        weights[name] = np.ones(256, np.float32)
    for constant in model.graph.initializer:
        name = {"val_12": "lm_head.weight"}.get(constant.name, constant.name)
        if name in weights and constant.name != "onnx::MatMul_7":
            array = np.zeros(weights[name].shape[:: -1 if name == "lm_head.weight" else 1], np.float32)
            constant.CopyFrom(numpy_helper.from_array(array, constant.name))
    convert = ARCHITECTURES["llama"]
    tensors |= {convert.tensors_of(name)[0]: plain(weights[name]) for name in weights if weights[name].ndim == 1}
    tensors["blk.0.ffn_down.weight"] = wide["model.layers.0.mlp.down_proj.weight"].stored()
    for tied in (True, False):
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"] if tied else wide["lm_head.weight"].numbers
        given = {name: tensor for name, tensor in tensors.items() if name != "output.weight"}
        given |= {} if tied else {"output.weight": wide["lm_head.weight"].stored()}
        path.write_bytes(gguf(given, METADATA))
        assert_computes(compiled(path, model)[0], weights)


@pytest.mark.parametrize("prefix", ["", "wrapped."])
def test_equal_names_need_no_architecture(tmp_path: Path, prefix: str) -> None:
    weights, _ = stored("F32")
    for path in (tmp_path / "tuned.safetensors", tmp_path / "tuned.gguf"):
        if path.suffix == ".gguf":
            path.write_bytes(gguf({name: plain(array) for name, array in weights.items()}))
        else:
            save_file(weights, path)
        plan, _ = compiled(path, model_of(prefix=prefix))
        assert_computes(plan, weights)


def test_named_weights_stay(tmp_path: Path) -> None:
    path, (weights, tensors) = tmp_path / "decoder.gguf", stored("Q8_0", HEADS)
    for given in (tensors, {name: tensor for name, tensor in tensors.items() if name != "output.weight"}):
        path.write_bytes(gguf(given, METADATA))
        plan, (replaced, _) = compiled(path, keep=["lm_head"])
        assert len(replaced.fired) == 7
        assert_computes(plan, {**weights, "lm_head.weight": np.zeros((40, 64))})
    with pytest.raises(CompileError, match=r"CC0407.*no weight has the name 'lm_tail'"):
        compiled(path, keep=["lm_*", "lm_tail"])


def test_weights_of_branches_are_replaced(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> m (float[n, 64] x, bool c) => (float[n, 32] y) {
        y = If (c) <
            then_branch = g () => (float[n, 32] a) { t = Transpose <perm = [1, 0]> (w) a = MatMul (x, t) },
            else_branch = g () => (float[n, 32] a) { a = Gemm <transB = 1> (x, w) }> }"""
    model, path, made = onnx.parser.parse_model(text), tmp_path / "tuned.gguf", matrix("Q4_0", 32, 64)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((32, 64), np.float32), "w"))
    path.write_bytes(gguf({"w": made.stored()}))
    plan, _ = compiled(path, model)
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    for choice in (True, False):
        found = compiler.load(plan, threads=1).run({"x": x, "c": np.array(choice)})["y"]
        np.testing.assert_allclose(found, x @ made.numbers.T, rtol=1e-5, atol=1e-5)


def without(name: str) -> Callable[[dict[str, Stored]], dict[str, Stored]]:
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if key != name}


def added(**more: Stored) -> Callable[[dict[str, Stored]], dict[str, Stored]]:
    return lambda tensors: tensors | {name.replace("__", "."): tensor for name, tensor in more.items()}


SMALL = plain(np.ones((2, 32), np.float32))
WRONG: dict[str, tuple[Callable[[dict[str, Stored]], dict[str, Stored]], dict[str, str | int], list[str]]] = {
    "a missing tensor": (
        without("blk.0.attn_q.weight"),
        METADATA,
        [
            "no tensor of decoder.gguf fits the weight 'onnx::MatMul_7' "
            "(model.layers.0.self_attn.q_proj.weight) [256, 256]"
        ],
    ),
    "a missing vector": (
        without("output_norm.weight"),
        METADATA,
        ["no tensor of decoder.gguf fits the weight 'model.norm.weight' [64]"],
    ),
    "more tensors": (
        added(blk__1__attn_q__weight=SMALL, rope_freqs__weight=SMALL),
        METADATA,
        ["no weight of the model fits the tensor of decoder.gguf, blk.1.attn_q.weight"],
    ),
    "another shape": (
        added(blk__0__attn_k__weight=plain(np.ones((128, 256), np.float32))),
        METADATA,
        [
            "'blk.0.attn_k.weight' has the shape [128, 256], but 'model.layers.0.self_attn.k_proj.weight' [256, 256] "
            "needs [256, 256]"
        ],
    ),
    "an unknown architecture": (
        added(),
        {"general.architecture": "mamba"},
        [
            "the compiler does not know how llama.cpp converts the architecture 'mamba' of decoder.gguf",
            "it knows llama, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2; of other files, only equal names count",
            "no weight of the model fits the tensor of decoder.gguf, token_embd.weight",
        ],
    ),
    "no number of heads": (
        added(),
        {"general.architecture": "llama"},
        ["'blk.0.attn_q.weight': 256 rows cannot be divided among 0 heads with two halves each"],
    ),
    "no architecture": (
        added(),
        {},
        ["no tensor of decoder.gguf fits the weight 'model.embed_tokens.weight' [40, 256]"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused(tmp_path: Path, name: str) -> None:
    change, metadata, expected = WRONG[name]
    path = tmp_path / "decoder.gguf"
    path.write_bytes(gguf(change(stored("Q8_0", HEADS)[1]), metadata))
    with pytest.raises(CompileError) as error:
        compiled(path)
    assert {each.code for each in error.value.diagnostics} == {"CC0409"}
    for text in expected:
        assert text in str(error.value)


def test_an_error_lists_some_of_many_tensors(tmp_path: Path) -> None:
    path, (_, tensors) = tmp_path / "decoder.gguf", stored("Q8_0", HEADS)
    path.write_bytes(gguf({**tensors, **{f"blk.{at}.more": SMALL for at in range(1, 100)}}, METADATA))
    with pytest.raises(CompileError, match="79 more are not listed") as error:
        compiled(path)
    assert len(error.value.diagnostics) == 21


def test_a_tensor_for_two_weights_is_refused(tmp_path: Path) -> None:
    path, (_, tensors), model = tmp_path / "decoder.gguf", stored("Q8_0", HEADS), model_of()
    model.graph.node[4].input[1] = "other"  # the second model has other keys
    model.graph.node.insert(4, helper.make_node("Transpose", ["side.layers.0.self_attn.k_proj.weight"], ["other"]))
    zeros = np.zeros((256, 256), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(zeros, "side.layers.0.self_attn.k_proj.weight"))
    path.write_bytes(gguf(tensors, METADATA))
    text = (
        "'blk.0.attn_k.weight' fits 'model.layers.0.self_attn.k_proj.weight', 'side.layers.0.self_attn.k_proj.weight'"
    )
    with pytest.raises(CompileError, match=text):
        compiled(path, model)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the weights cannot be read: .*decoder.gguf: No such file"),
        (b"", "neither a safetensors file nor a GGUF file, or it is cut short"),
        (b"GGUF\x03\0\0\0", "it is a damaged GGUF file"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "decoder.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CompileError, match=rf"CC0409.*{said}"):
        compiled(path)


def test_integers_are_no_weights(tmp_path: Path) -> None:
    path, (weights, _) = tmp_path / "tuned.safetensors", stored("F32")
    save_file({**weights, "model.norm.weight": np.ones(64, np.int32)}, path)
    with pytest.raises(CompileError, match=r"'model.norm.weight' is of int32, but the weight .* is of floats"):
        compiled(path)


def test_options_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="changes weights: leave it out, or keep_weights"):
        Options(weights="a.gguf", keep_weights=True)
    with pytest.raises(ValueError, match="changes weights: leave it out, or weights"):
        Options(weights=Path("a.gguf"), precision="bf16")
    with pytest.raises(ValueError, match=r"or name a \.gguf or \.safetensors file"):
        Options(weights="a.bin")
