"""Write text with a language model: a decoder in ONNX with caches as inputs and outputs, or its plan."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

import compiler

EXAMPLE = """example:
  candlec compile decoder.onnx --state auto -o decoder.plan
  python examples/generate.py decoder.plan "Once upon a time" --tokenizer tokenizer.json --top-p 0.9 --seed 1

Without --tokenizer, texts are lists of token ids:
  python examples/generate.py decoder.plan "5 17 3" --temperature 0
"""


def open_session(path: Path, device: str, threads: int | None) -> compiler.Session:
    is_model = path.suffix == ".onnx"
    plan = compiler.compile(path, compiler.Options(state="auto")) if is_model else path
    session = compiler.load(plan, device, threads)
    if not session.state:
        raise ValueError(f"{path} has no state: compile the model with `candlec compile --state auto`")
    return session


def inputs_of(session: compiler.Session, tokens: Sequence[int], past: int) -> dict[str, Any]:
    """The inputs of a run that reads `tokens` after `past` others: all that the state does not hold, by usual names."""
    total = past + len(tokens)
    known = {
        "input_ids": np.array([tokens]),
        "attention_mask": np.ones((1, total)),
        "position_ids": np.arange(past, total)[None],
        "cache_position": np.arange(past, total),
        "use_cache_branch": np.array([past > 0]),
    }
    held = {pair.input for pair in session.state}
    asked = {info.name: info.dtype for info in session.inputs if info.name not in held and info.kind == "tensor"}
    if unknown := [name for name in asked if name not in known]:
        raise ValueError(f"the model has an input {unknown[0]!r}, and this program knows only {', '.join(known)}")
    return {name: known[name].astype(dtype) for name, dtype in asked.items()}


def sample(logits: Any, random: np.random.Generator, temperature: float, top_k: int, top_p: float) -> int:
    """A token of the probabilities `softmax(logits / temperature)`; the most probable token if the temperature is 0.

    It is one of the `top_k` most probable tokens (0: of all), and of the fewest of these whose probabilities sum to
    `top_p`.
    """
    if np.isnan(logits).any():
        raise ValueError("the model computed NaN instead of the logits of the next token")
    if temperature == 0:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable")[: top_k or None]
    likely = np.exp((logits[order] - logits[order[0]]) / temperature)
    likely /= likely.sum()
    likely = likely[: 1 + np.searchsorted(likely.cumsum(), top_p)]
    return int(random.choice(order[: len(likely)], p=likely / likely.sum()))


def generate(session: compiler.Session, prompt: Sequence[int], choose: Callable[[Any], int]) -> Iterator[int]:
    """The tokens after a prompt, without end; `choose` takes the logits `[vocabulary]` and returns a token.

    The first run reads the prompt, and each other run the token before. The state holds the caches.
    """
    held = {pair.output for pair in session.state}
    logits = next(info.name for info in session.outputs if info.name not in held)
    state, past, tokens = session.new_state(), 0, list(prompt)
    while True:
        outputs = session.run(inputs_of(session, tokens, past), outputs=[logits], state=state)
        past, tokens = past + len(tokens), [choose(outputs[logits][0, -1].astype(np.float64))]
        yield tokens[0]


def opened_tokenizer(path: Path) -> tuple[Any, set[int]]:
    """The tokenizer, and the tokens that end a text. The files of transformers in its folder name these tokens."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise ValueError("--tokenizer needs the package tokenizers: run `pip install tokenizers`") from None
    ends = [json.loads(file.read_text()).get("eos_token_id") for file in path.parent.glob("*config.json")]
    return Tokenizer.from_str(path.read_text()), {*np.hstack([end for end in ends if end is not None] or [[]])}


def number(text: str, tokenizer: Any) -> int:
    """The token that a text names, such as `<|endoftext|>`, or its number."""
    token = tokenizer.token_to_id(text) if tokenizer else None
    if token is None and not text.isdecimal():
        raise ValueError(f"{text!r} is no number" + (" and no token" if tokenizer else ": texts need --tokenizer"))
    return int(text) if token is None else token


def pieces(tokens: Iterator[int], prompt: Sequence[int], tokenizer: Any) -> Iterator[str]:
    """The text of each token, as soon as its characters are whole; without a tokenizer, its number."""
    if tokenizer is None:
        yield from (f"{token} " for token in tokens)
        return
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(skip_special_tokens=True)
    for token in prompt:  # it decides whether a space comes before the next token
        stream.step(tokenizer, token)
    yield from (stream.step(tokenizer, token) or "" for token in tokens)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE, formatter_class=style)
    add = parser.add_argument
    add("model", type=Path, help="a plan with a state, or an .onnx file, which is compiled first")
    add("prompt", help="the beginning of the text")
    add("--tokenizer", type=Path, metavar="FILE", help="the model's tokenizer.json")
    add("--tokens", type=int, default=100, metavar="N", help="write at most N tokens (default 100)")
    help_t = "0 always takes the most probable token (default 1)"
    add("--temperature", type=float, default=1.0, metavar="T", help=help_t)
    add("--top-k", type=int, default=0, metavar="K", help="draw one of the K most probable tokens (default 0: of all)")
    help_p = "draw one of the fewest tokens whose probabilities sum to P (default 1)"
    add("--top-p", type=float, default=1.0, metavar="P", help=help_p)
    add("--seed", type=int, help="a number with which each call draws the same tokens")
    add("--stop", action="append", default=[], metavar="TOKEN", help="end before this token; may be repeated")
    add("--device", default="cpu", help="cpu (default), cuda or auto")
    add("--threads", type=int, help="threads of a run (default: as many as processors)")
    found = parser.parse_args(given)
    for name, most in (("tokens", 1e9), ("temperature", 1e6), ("top_k", 1e9), ("top_p", 1), ("seed", 1e18)):
        if not 0 <= (getattr(found, name) or 0) <= most:
            parser.error(f"--{name.replace('_', '-')} is a number from 0 to {most:g}")
    return found


def main(given: Sequence[str] | None = None) -> None:
    asked = arguments(given)
    try:
        tokenizer, stop = opened_tokenizer(asked.tokenizer) if asked.tokenizer else (None, set())
        prompt = tokenizer.encode(asked.prompt).ids if tokenizer else [number(x, None) for x in asked.prompt.split()]
        if not prompt:
            raise ValueError("the prompt has no tokens")
        stop |= {number(text, tokenizer) for text in asked.stop}
        random = np.random.default_rng(asked.seed)
        choose = partial(sample, random=random, temperature=asked.temperature, top_k=asked.top_k, top_p=asked.top_p)
        tokens = generate(open_session(asked.model, asked.device, asked.threads), prompt, choose)
        tokens = takewhile(lambda token: token not in stop, islice(tokens, asked.tokens))
        for piece in pieces(tokens, prompt, tokenizer):
            print(piece, end="", flush=True)
        print()
    except (compiler.Error, OSError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
