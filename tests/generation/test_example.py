"""`examples/generate.py`: tokens, texts, sampling, and errors that are sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import compiler
from compiler import Options
from tests.generation import tiny
from tests.generation.example import PATH, generate, inputs_of, main, sample
from tests.generation.tiny import PROMPT, likeliest, write_decoder

WORDS = ["<s>", "</s>", "the", "cat", "sat", "on", "a", "mat", "and", "ran"]


@pytest.fixture
def decoder(tmp_path: Path) -> Path:
    """A decoder in an ONNX file."""
    return write_decoder(tmp_path / "decoder.onnx")


def printed(capsys: pytest.CaptureFixture[str], *given: Any) -> str:
    main([str(each) for each in given])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *given: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in given])
    return str(ended.value.code) if isinstance(ended.value.code, str) else capsys.readouterr().err


def test_numbers_without_a_tokenizer(decoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = " ".join(map(str, likeliest(12))) + " \n"
    assert len({*likeliest(12)}) > 2
    assert printed(capsys, decoder, "2 3", "--tokens", 12, "--temperature", 0) == wanted
    compiler.compile(decoder, Options(state="auto")).save(tmp_path / "decoder.plan")
    assert printed(capsys, tmp_path / "decoder.plan", "2 3", "--tokens", 12, "--temperature", 0) == wanted
    assert printed(capsys, decoder, "2 3", "--tokens", 12, "--top-k", 1) == wanted
    assert printed(capsys, decoder, "2 3", "--tokens", 12, "--top-p", 0) == wanted


def test_a_stop_token_ends_the_text(decoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = likeliest(12)
    before = tokens[: tokens.index(tokens[4])]
    found = printed(capsys, decoder, "2 3", "--temperature", 0, "--stop", tokens[4])
    assert found == "".join(f"{token} " for token in before) + "\n"


def test_a_seed_decides_the_tokens(decoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [printed(capsys, decoder, "2 3", "--tokens", 30, "--temperature", 3, "--seed", seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_texts_with_a_tokenizer(decoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(WORDS[:2])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    asked = [decoder, "the cat", "--tokenizer", tmp_path / "tokenizer.json", "--temperature", 0, "--tokens", 12]
    tokens = likeliest(12)
    words = [WORDS[token] for token in tokens if token > 1]
    assert printed(capsys, *asked).split() == words
    stop = next(token for token in tokens if token > 1)
    assert printed(capsys, *asked, "--stop", WORDS[stop]).split() == words[: words.index(WORDS[stop])]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, stop]}))
    (tmp_path / "config.json").write_text("{}")
    assert printed(capsys, *asked).split() == words[: words.index(WORDS[stop])]


def test_characters_are_printed_whole(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    pieces = main.__globals__["pieces"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(["x"], tokenizers.trainers.BpeTrainer(initial_alphabet=alphabet))
    tokens = tokenizer.encode("é→x").ids
    assert len(tokens) == 6
    assert list(pieces(iter(tokens), tokens[-1:], tokenizer)) == ["", "é", "", "", "→", "x"]


def test_a_model_gets_the_inputs_that_it_has() -> None:
    more = ", int64[batch, total] attention_mask, int32[batch, n] position_ids, bool[1] use_cache_branch"
    rest = "masked = ReduceSum <keepdims = 0> (attention_mask, axis)\n logits = Identity (scores)"
    model = tiny.decoder(more, rest)
    session = compiler.load(compiler.compile(model, Options(state="auto")))
    first, later = inputs_of(session, PROMPT, 0), inputs_of(session, [5], 2)
    assert {name: value.tolist() for name, value in first.items()} == {
        "input_ids": [[2, 3]],
        "attention_mask": [[1, 1]],
        "position_ids": [[0, 1]],
        "use_cache_branch": [False],
    }
    assert {name: value.tolist() for name, value in later.items()} == {
        "input_ids": [[5]],
        "attention_mask": [[1, 1, 1]],
        "position_ids": [[2]],
        "use_cache_branch": [True],
    }
    assert later["position_ids"].dtype == np.int32
    assert list(islice(generate(session, PROMPT, np.argmax), 12)) == likeliest(12)


@pytest.mark.parametrize(
    ("top_k", "top_p", "allowed"), [(0, 1.0, 4), (2, 1.0, 2), (0, 0.6, 2), (0, 0.5, 1), (3, 0.99, 3)]
)
def test_samples_have_the_probabilities_of_the_logits(top_k: int, top_p: float, allowed: int) -> None:
    order, likely = np.array([2, 0, 3, 1]), np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.empty(4)
    logits[order] = 2 * np.log(likely) + 7  # at temperature 2, the probabilities are `likely`
    random = np.random.default_rng(0)
    drawn = [sample(logits, random, 2.0, top_k, top_p) for _ in range(4000)]
    wanted = np.zeros(4)
    wanted[order[:allowed]] = likely[:allowed] / likely[:allowed].sum()
    assert np.abs(np.bincount(drawn, minlength=4) / len(drawn) - wanted).max() < 0.03
    assert {*drawn} == {*order[:allowed].tolist()}


def test_samples_of_infinite_logits() -> None:
    random = np.random.default_rng(0)
    assert sample(np.array([-np.inf, 1.0, -np.inf]), random, 1.0, 0, 1.0) == 1
    with pytest.raises(ValueError, match="the model computed NaN"):
        sample(np.array([0.0, np.nan]), random, 1.0, 0, 1.0)


def test_errors_are_sentences(decoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiler.compile(decoder).save(tmp_path / "stateless.plan")
    assert "stateless.plan has no state: compile the model with" in refused(capsys, tmp_path / "stateless.plan", "2")
    assert "'the' is no number: texts need --tokenizer" in refused(capsys, decoder, "the")
    assert refused(capsys, decoder, " ") == "error: the prompt has no tokens"
    assert "No such file" in refused(capsys, tmp_path / "no.plan", "2")
    assert "index 10 is out of range" in refused(capsys, decoder, "10")
    assert "--top-p is a number from 0 to 1" in refused(capsys, decoder, "2", "--top-p", 1.5)
    assert "--temperature is a number from 0 to" in refused(capsys, decoder, "2", "--temperature", -1)
    onnx.save(tiny.decoder(", float[1] guidance", "logits = Mul (scores, guidance)"), decoder)
    assert "the model has an input 'guidance', and this program knows only input_ids" in refused(capsys, decoder, "2")


def test_a_missing_package_is_an_error(
    decoder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "needs the package tokenizers: run" in refused(capsys, decoder, "2", "--tokenizer", "tokenizer.json")


def test_the_program_is_short_and_shows_an_example() -> None:
    assert len(PATH.read_text().splitlines()) <= 160
    environment = {**os.environ, "PYTHONPATH": str(PATH.parent.parent)}
    done = subprocess.run([sys.executable, PATH, "--help"], capture_output=True, text=True, check=True, env=environment)
    assert "examples/generate.py decoder.plan" in done.stdout
