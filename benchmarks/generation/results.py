"""The times of the runtimes for one decoder and number of threads, and the tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.generation.shapes import SHAPES

__all__ = ["Result", "tables"]

OURS = "this runtime"


@dataclass(frozen=True)
class Result:
    """The times of some rounds, by runtime, in seconds."""

    shape: str
    threads: int
    prompt: int
    """The tokens of the prompt."""
    bandwidth: float
    """Bytes per second that so many threads read from memory."""
    prefill: dict[str, list[float]]
    """The times of the prompt."""
    decode: dict[str, list[float]]
    """The times of one token."""
    differences: dict[str, float]
    """`‖y − x‖ / ‖x‖` of the logits y after the last token, where x are those of onnxruntime."""

    def ratio(self, times: dict[str, list[float]]) -> float:
        """The speed of this runtime, divided by that of the fastest other one."""
        other = min((name for name in times if name != OURS), key=lambda name: statistics.median(times[name]))
        return statistics.median(b / a for a, b in zip(times[OURS], times[other], strict=True))

    @property
    def limit(self) -> float:
        """The tokens per second if each one takes the time to read the weights from memory."""
        return self.bandwidth / SHAPES[self.shape].read


def rate(count: int, times: list[float]) -> str:
    """The median of `count / time`, and its quartiles."""
    low, median, high = statistics.quantiles([count / each for each in times], n=4)
    return f"{median:.1f} ({low:.1f}–{high:.1f})"


def lines(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]


def tables(results: list[Result]) -> str:
    """The tables of both speeds."""
    names = list(results[0].prefill)
    head = ["decoder", "threads", *names, "÷ the faster other"]
    prefill = [[*_cells(each, each.prefill, each.prompt)] for each in results]
    decode = [
        [
            *_cells(each, each.decode, 1),
            f"{each.bandwidth / 1e9:.1f}",
            f"{SHAPES[each.shape].read / 1e6:.0f}",
            f"{each.limit:.1f}",
            f"{1 / statistics.median(each.decode[OURS]) / each.limit:.2f}",
        ]
        for each in results
    ]
    memory = ["GB/s of memory", "MB of weights", "limit", "÷ limit"]
    differences = [
        [each.shape, str(each.threads), *(f"{each.differences[name]:.3f}" for name in names)] for each in results
    ]
    parts = [
        [f"A prompt of {results[0].prompt} tokens, in tokens per second:", "", *lines(head, prefill)],
        ["Single tokens, in tokens per second:", "", *lines([*head, *memory], decode)],
        ["The difference of the logits from those of onnxruntime:", "", *lines(head[:-1], differences)],
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def _cells(result: Result, times: dict[str, list[float]], count: int) -> list[str]:
    rates = [rate(count, each) for each in times.values()]
    return [result.shape, str(result.threads), *rates, f"{result.ratio(times):.2f}"]
