"""The names that exporters give to a value that a caller feeds back: before the run, and after it.

- `past_key_values.0.key` and `present.0.key` (Optimum, onnxruntime-genai), `past_0` and `present_0` (transformers),
- `state` and `stateN`, `h0` and `hn`, `h` and `hn` (Silero's models, PyTorch's recurrent layers),
- `conv_cache` and `conv_cache_out`, `in_state` and `out_state`, `state_in` and `state_out`,
- `cached_key_0` and `new_cached_key_0` (sherpa-onnx), `att_cache` and `r_att_cache` (WeNet),
- `input_states_1` and `output_states_1`, `cache_last_channel` and `cache_last_channel_next` (NeMo).

A name consists of words. Both names have the same words, except that each may have a mark: one of the words above, such
as `past` or `out`. The name of an output needs a mark. A word of the input's name says that the value is a state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["joined"]

Words = tuple[str, ...]

_MARKS: dict[Words, list[Words]] = {
    ("present", "key", "values"): [("past", "key", "values")],
    ("present",): [("past", "key", "values"), ("past",)],
    ("out",): [("in",)],
    ("output",): [("input",)],
    ("new",): [("old",)],
    ("next",): [("prev",), ("previous",), ("last",)],
    ("final",): [("init",), ("initial",)],
    ("+n",): [("+0",)],
    ("updated",): [],
    ("r",): [],
}
"""The marks of outputs, each with the marks of inputs that fit best. `+n` is the last letter of `stateN` and `hn`."""
_STATES = {"past", "present", "state", "states", "cache", "caches", "cached", "hidden", "cell", "memory", "mem", "mems"}
_STATES |= {"buffer", "buffers", "context", "ctx", "h", "c", "hx", "cx", "lstm", "gru", "rnn"}
"""The words that say that a value is a state."""


def joined(inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of an output and an input whose names say that one is the next value of the other.

    They are in the order of the outputs. Each output and each input is in at most one pair.
    """
    known: dict[Words, list[tuple[str, Words]]] = {}
    for name in inputs:
        words = _words(name)
        if _STATES & {*words}:
            marks = [mark for partners in _MARKS.values() for mark in partners]
            for rest, mark in [(words, ()), *_without(words, marks)]:
                known.setdefault(rest, []).append((name, mark))
    taken: set[str] = set()
    for output in outputs:
        found = [
            (0 if own in _MARKS[mark] else 1 if not own else 2, name)
            for rest, mark in _without(_words(output), _MARKS)
            for name, own in known.get(rest, ())
            if name not in taken
        ]
        if found:
            _, given = min(found, key=lambda each: each[0])
            taken.add(given)
            yield output, given


def _words(name: str) -> Words:
    """The words of a name, in lower case. The last letter of `stateN`, `hn` and `h0` is a word, with a plus sign."""
    words: list[str] = []
    for word in re.split(r"[^a-z0-9]+", name.lower()):
        if word[:-1] in _STATES and word[-1] in "n0":
            words += [word[:-1], f"+{word[-1]}"]
        elif word:
            words.append(word)
    return tuple(words)


def _without(words: Words, marks: Iterable[Words]) -> Iterator[tuple[Words, Words]]:
    """The words without one of the marks, and this mark, for each mark and each place of it."""
    for mark in marks:
        for at in range(len(words) - len(mark) + 1):
            if words[at : at + len(mark)] == mark:
                yield words[:at] + words[at + len(mark) :], mark
