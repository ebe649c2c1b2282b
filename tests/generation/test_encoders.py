"""T5 and Whisper write the same tokens as transformers: an encoder, and decoders with two kinds of caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError, Options
from tests.generation.encoders import PAST, PRESENT, exported, merged, t5, whisper
from tests.generation.models import COUNT, PROMPT, generated, torch
from tests.test_docs import ROOT, block

OWN = dict(zip(PRESENT[:4], PAST[:4], strict=True))
"""The caches that grow. Those of the encoder's output are inputs of each run, which reads them in place."""
CROSS = dict(zip(PRESENT[4:], PAST[4:], strict=True))


@pytest.mark.parametrize("name", ["T5", "Whisper"])
def test_encoders_and_decoders_write_the_tokens_of_transformers(
    name: str, tmp_path: Path, quick_exports: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = t5() if name == "T5" else whisper()
    inputs = PROMPT if name == "T5" else np.random.default_rng(3).standard_normal((1, 20, 60), np.float32)
    expected = generated(model, inputs)
    assert len({*expected}) > 4
    varying = {1: "source"} if name == "T5" else {}
    encoder, first, later = exported(model, torch.from_numpy(inputs), tmp_path, varying)
    hidden = opened(encoder)(inputs)
    assert list(split(hidden, opened(first), opened(later, state="auto"))) == expected
    if name == "T5":
        monkeypatch.chdir(tmp_path)
        page = (ROOT / "docs/generation.md").read_text().partition("## Encoders")[2]
        exec(block(page, "import numpy as np"), {})
        assert [int(line) for line in capsys.readouterr().out.splitlines()] == expected
        path = merged(first, later, tmp_path / "merged.onnx")
        assert list(chosen(hidden, opened(path, state="auto"))) == expected
        with pytest.raises(CompileError, match="a branch of an If always makes it empty"):
            compiler.compile(path, Options(state={"present.*": "past_key_values.*"}))


def opened(path: Path, **options: Any) -> compiler.Session:
    return compiler.load(compiler.compile(path, Options(**options)), threads=2)


def split(hidden: Any, first: compiler.Session, later: compiler.Session) -> Iterator[int]:
    """The tokens of two decoders: `first` makes the caches, and `later` reads them."""
    assert {pair.output: pair.input for pair in later.state} == OWN
    outputs = first.run({"input_ids": np.array([[0]]), "encoder_hidden_states": hidden})
    state = later.new_state({target: outputs[source] for source, target in OWN.items()})
    caches = {target: outputs[source] for source, target in CROSS.items()}
    yield from likeliest(outputs, lambda ids: later.run({"input_ids": ids, **caches}, state=state))


def chosen(hidden: Any, decoder: compiler.Session) -> Iterator[int]:
    """The tokens of a decoder that makes the caches in its first run, and reads them in the others."""
    assert {pair.output: pair.input for pair in decoder.state} == OWN
    assert {pair.axis for pair in decoder.state} == {2}
    state = decoder.new_state()
    given = {"encoder_hidden_states": hidden, "use_cache_branch": np.array([False])}
    given |= dict.fromkeys(PAST[4:], np.zeros((1, 4, hidden.shape[1], 16), np.float32))  # the branch does not read them
    outputs = decoder.run({**given, "input_ids": np.array([[0]])}, state=state, outputs=["logits", *CROSS])
    given |= {target: outputs[source] for source, target in CROSS.items()}
    given["use_cache_branch"] = np.array([True])
    yield from likeliest(outputs, lambda ids: decoder.run({**given, "input_ids": ids}, state=state, outputs=["logits"]))
    assert state.length == COUNT


def likeliest(outputs: dict[str, Any], run: Callable[[Any], dict[str, Any]]) -> Iterator[int]:
    """The likeliest tokens. `run` reads each of them except the last."""
    for at in range(COUNT):
        ids = outputs["logits"][:, -1:].argmax(-1)
        yield int(ids[0, 0])
        if at < COUNT - 1:
            outputs = run(ids)
