"""`benchmarks.generation`: files of decoders that all runtimes read alike, the bandwidth of memory, and the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.generation.bandwidth import bandwidth
from benchmarks.generation.gguf_file import blocks, turned, write_gguf
from benchmarks.generation.onnx_file import packed, write_onnx
from benchmarks.generation.process import tokens_of, turn
from benchmarks.generation.results import Result, tables
from benchmarks.generation.runtimes import LlamaCpp, Onnxruntime, Ours
from benchmarks.generation.shapes import SHAPES, Array, Shape, matrix

TINY = [
    replace(shape, name=name, layers=2, hidden=128, heads=4, kv_heads=2, inner=160, vocabulary=96)
    for name, shape in SHAPES.items()
]
PROMPT, KEPT, STEPS = 20, 7, 3


def logits(runtime: type[Ours | Onnxruntime | LlamaCpp], shape: Shape, folder: Path) -> list[Array]:
    """The logits after a prompt, and after single tokens that follow a part of it."""
    found, tokens = runtime(shape, folder, 1), tokens_of(shape, PROMPT)
    prompt = np.array(found.read(tokens))
    times = turn(found, tokens, PROMPT, KEPT, STEPS)
    assert times[0] > 0 and times[1] > 0
    return [prompt, times[2]]


def difference(ones: Array, others: Array) -> float:
    return float(np.linalg.norm(ones - others) / np.linalg.norm(others))


@pytest.mark.parametrize("shape", TINY, ids=lambda shape: shape.name)
def test_a_plan_gives_the_logits_of_onnxruntime(shape: Shape, tmp_path: Path) -> None:
    """Both round the left operands of products to 8 bits. Numbers between two integers may become either one."""
    write_onnx(shape, tmp_path / f"{shape.name}.onnx")
    for ours, theirs in zip(logits(Ours, shape, tmp_path), logits(Onnxruntime, shape, tmp_path), strict=True):
        assert difference(ours, theirs) < 0.01
        assert np.linalg.norm(theirs) > 1


@pytest.mark.parametrize("shape", TINY, ids=lambda shape: shape.name)
def test_llama_cpp_gives_the_logits_of_a_plan(shape: Shape, tmp_path: Path) -> None:
    """llama.cpp also rounds scales of the left operand, and the caches, to 16 bits."""
    pytest.importorskip("gguf", reason="needs gguf")
    pytest.importorskip("llama_cpp", reason="needs llama-cpp-python")
    write_onnx(shape, tmp_path / f"{shape.name}.onnx")
    write_gguf(shape, tmp_path / f"{shape.name}.gguf")
    for theirs, ours in zip(logits(LlamaCpp, shape, tmp_path), logits(Ours, shape, tmp_path), strict=True):
        assert difference(theirs, ours) < 0.02


def test_both_files_have_the_numbers_of_a_matrix() -> None:
    found = matrix("any", 6, 96)
    numbers, scales = found.dequantized(), found.scales[..., None].astype(np.float32)
    assert abs(numbers.mean()) < 0.01 and 0.5 < numbers.std() * 96**0.5 < 2
    of_onnx = np.stack([packed(found) & 15, packed(found) >> 4], axis=-1).reshape(6, 3, 32)
    stored = blocks(found).reshape(6, 3, 18)
    of_gguf = np.concatenate([stored[..., 2:] & 15, stored[..., 2:] >> 4], axis=-1)
    assert (stored[..., :2].copy().view(np.float16) == found.scales[..., None]).all()
    for codes in (of_onnx, of_gguf):
        assert (((codes - np.float32(8)) * scales).reshape(6, 96) == numbers).all()


def test_rows_of_a_head_are_turned_from_halves_to_pairs() -> None:
    assert turned(np.arange(12)[:, None], 2).ravel().tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_a_token_reads_the_weights_of_all_matrices_once() -> None:
    qwen, llama = SHAPES.values()
    assert (qwen.weights, llama.weights) == (493_961_216, 1_235_746_816)
    assert qwen.read == qwen.weights * 18 // 32


def test_the_bandwidth_is_a_number_of_bytes_per_second() -> None:
    assert all(0 < bandwidth(threads, 1 << 16) < 1e15 for threads in (1, 2))


def test_the_tables_have_both_speeds_and_the_limit() -> None:
    times = {"this runtime": [1.0, 2.0, 2.0], "onnxruntime": [4.0, 4.0, 4.0], "llama.cpp": [3.0, 2.0, 3.0]}
    shape = SHAPES["qwen2-0.5b"]
    result = Result(shape.name, 1, 512, 2.0 * shape.read, times, times, dict.fromkeys(times, 0.25))
    text = tables([result])
    assert "| qwen2-0.5b | 1 | 256.0 (256.0–512.0) | 128.0 (128.0–128.0) | 170.7 (170.7–256.0) | 1.50 |" in text
    assert "| 1.50 | 0.6 | 278 | 2.0 | 0.25 |" in text
    assert "| qwen2-0.5b | 1 | 0.250 | 0.250 | 0.250 |" in text
