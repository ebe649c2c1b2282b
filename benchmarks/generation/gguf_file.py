"""Decoders as GGUF files for llama.cpp, with the same weights as the ONNX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.generation.onnx_file import CONTEXT, EPSILON
from benchmarks.generation.shapes import Array, Matrix, Shape, matrix, numbers

__all__ = ["blocks", "turned", "write_gguf"]


def blocks(found: Matrix) -> Array:
    """The blocks of GGUF's type Q4_0, `uint8 [rows, bytes]`: a scale, and the codes i and i + 16 in byte i."""
    low, high = np.split(found.codes, 2, axis=-1)
    scales = found.scales[..., None].view(np.uint8)
    return np.concatenate([scales, low | high << 4], axis=-1).reshape(len(low), -1)


def turned(rows: Array, heads: int) -> Array:
    """The rows of queries or keys in the order of llama.cpp's rotary embedding of Llama, which turns (2i, 2i + 1).

    The embedding in ONNX turns the pairs (i, i + head / 2).
    """
    size = len(rows) // heads
    return np.asarray(rows.reshape(heads, 2, size // 2, -1).swapaxes(1, 2).reshape(rows.shape))


def _attention(shape: Shape, layer: int) -> dict[str, Array]:
    """The matrices and biases of queries, keys and values."""
    found = matrix(f"{layer}.qkv", *shape.matrices()[f"{layer}.qkv"])
    bias, tensors, first = numbers(f"{layer}.qkv.bias", sum(shape.parts), 0), {}, 0
    for name, size, heads in zip("qkv", shape.parts, (shape.heads, shape.kv_heads, None), strict=True):
        rows = blocks(found.rows(first, first + size))
        is_turned = shape.architecture == "llama" and heads is not None
        tensors[f"blk.{layer}.attn_{name}.weight"] = turned(rows, heads) if is_turned and heads else rows
        if shape.has_bias:
            tensors[f"blk.{layer}.attn_{name}.bias"] = bias[first : first + size]
        first += size
    return tensors


def _layer(shape: Shape, layer: int) -> dict[str, Array]:
    """The tensors of a layer."""
    names = {"out": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
    sizes = shape.matrices()
    return {
        f"blk.{layer}.attn_norm.weight": numbers(f"{layer}.norm", shape.hidden, 1),
        f"blk.{layer}.ffn_norm.weight": numbers(f"{layer}.middle_norm", shape.hidden, 1),
        **_attention(shape, layer),
        **{
            f"blk.{layer}.{name}.weight": blocks(matrix(f"{layer}.{ours}", *sizes[f"{layer}.{ours}"]))
            for ours, name in names.items()
        },
    }


def write_gguf(shape: Shape, path: Path) -> None:
    """Write the decoder. It has no tokenizer."""
    import gguf

    writer = gguf.GGUFWriter(path, shape.architecture)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.rotary_base)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    tensors = {"token_embd.weight": blocks(matrix("embedding", shape.vocabulary, shape.hidden))}
    tensors["output_norm.weight"] = numbers(f"{shape.layers}.norm", shape.hidden, 1)
    for layer in range(shape.layers):
        tensors |= _layer(shape, layer)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType.Q4_0 if tensor.dtype == np.uint8 else None
        writer.add_tensor(name, tensor, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
