"""Times `torch.compile(backend="candle")` beside PyTorch without compilation and the backend inductor.

The networks have random weights and the sizes of the well-known models. The script compares each result with that of
PyTorch, and writes a table of Markdown. It needs the extra `dev`, and a C++ compiler for inductor.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from compiler.bench.machine import described, in_words
from compiler.dynamo import FallbackWarning, candle

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "benchmarks/results/torch-compile.md"
TOLERANCE = 1e-4
"""The largest difference from PyTorch's result, as a part of its largest magnitude."""
NEW_TOKENS = 32

Wrap = Callable[[Any], Any]
"""Compiles a module or function."""
Run = Callable[[], torch.Tensor]


def resnet50() -> Callable[[Wrap], Run]:
    """ResNet-50 of torchvision on one picture of 224 × 224."""
    from torchvision.models import resnet50

    network, pictures = resnet50().eval(), torch.randn(1, 3, 224, 224)

    def wrapped(wrap: Wrap) -> Run:
        run = wrap(network)
        return lambda: run(pictures)

    return wrapped


def bert() -> Callable[[Wrap], Run]:
    """BERT-base of transformers on a sentence of 128 words. A mask hides the last 28 words."""
    from transformers import BertConfig, BertModel

    network, words = BertModel(BertConfig()).eval(), torch.randint(30000, (1, 128))
    mask = (torch.arange(128) < 100).long()[None]

    def wrapped(wrap: Wrap) -> Run:
        run = wrap(network)
        return lambda: run(words, attention_mask=mask).last_hidden_state

    return wrapped


def gpt2() -> Callable[[Wrap], Run]:
    """GPT-2 of transformers: `generate()` chooses 32 words after 32 given ones, with a cache of keys and values."""
    from transformers import GPT2Config, GPT2LMHeadModel

    network, words = GPT2LMHeadModel(GPT2Config()).eval(), torch.randint(50000, (1, 32))
    options = {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 0}

    def wrapped(wrap: Wrap) -> Run:
        own = copy.copy(network)
        own.forward = wrap(network.forward)

        def run() -> torch.Tensor:
            found = own.generate(
                words,
                attention_mask=torch.ones_like(words),
                return_dict_in_generate=True,
                output_logits=True,
                **options,
            )
            return torch.stack(found.logits)

        return run

    return wrapped


NETWORKS = {"ResNet-50": resnet50, "BERT-base": bert, "GPT-2": gpt2}
BACKENDS: dict[str, Any] = {"PyTorch": None, "inductor": "inductor", "candle": candle}


@dataclass
class Measured:
    """The seconds of a network with a backend, and the difference of its result."""

    first: float
    difference: float
    runs: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=NETWORKS, help="measure one network, and keep the other rows of the page")
    parser.add_argument("--check", action="store_true", help="compare the results, and measure no times")
    parser.add_argument("--seconds", type=float, default=6, help="of the runs of a network (default: %(default)s)")
    parser.add_argument("--note", default="", help="a sentence about the machine")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page (default: %(default)s)")
    chosen = parser.parse_args()
    warnings.simplefilter("error", FallbackWarning)
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "torchvision", "transformers"))
    machine = f"{in_words(described(()))}, {packages}"
    lines = chosen.output.read_text().splitlines() if chosen.output.exists() else []
    rows = {name: line for name in NETWORKS for line in lines if line.startswith(f"| {name} |")}
    for name in [chosen.only] if chosen.only else NETWORKS:
        rows[name] = row(name, measured(NETWORKS[name], None if chosen.check else chosen.seconds))
        chosen.output.write_text(page(machine, chosen.note, [rows[each] for each in NETWORKS if each in rows]))
        print(rows[name], flush=True)
    sys.exit(any("✗" in each for each in rows.values()))


def measured(build: Callable[[], Callable[[Wrap], Run]], seconds: float | None) -> dict[str, Measured]:
    """The times of all backends, which run in turns. Without `seconds`, only the difference of candle's result."""
    torch.manual_seed(0)
    wrapped = build()
    with torch.inference_mode():
        chosen = BACKENDS if seconds else {name: BACKENDS[name] for name in ("PyTorch", "candle")}
        runs = {name: wrapped(wrapping(backend)) for name, backend in chosen.items()}
        expected = runs["PyTorch"]()
        largest = float(expected.abs().max())
        results = {}
        for name, run in runs.items():
            start = time.perf_counter()
            difference = float((run() - expected).abs().max()) / largest
            results[name] = Measured(time.perf_counter() - start, difference)
            run()  # a run may compile once more, for other sizes
        end = time.perf_counter() + (seconds or 0)
        while seconds and (time.perf_counter() < end or len(results["candle"].runs) < 3):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                results[name].runs.append(time.perf_counter() - start)
    return results


def wrapping(backend: Any) -> Wrap:
    return lambda function: function if backend is None else torch.compile(function, backend=backend)


def row(name: str, results: dict[str, Measured]) -> str:
    """A row of the table."""
    own = results["candle"]
    mark = "" if own.difference <= TOLERANCE else " ✗"
    if not own.runs:
        return f"| {name} |{' – |' * 8} {own.difference:.1e}{mark} | – |"
    base, inductor = results["PyTorch"], results["inductor"]
    times = " | ".join(f"{each.median * 1000:.1f}" for each in (base, inductor, own))
    ratios = f"{own.median / base.median:.2f} | {own.median / inductor.median:.2f}"
    return (
        f"| {name} | {times} | {ratios} | {inductor.first:.0f} | {own.first:.0f} "
        f"| {inductor.difference:.1e} | {own.difference:.1e}{mark} | {len(own.runs)} |"
    )


def page(machine: str, note: str, rows: list[str]) -> str:
    """The page with the table of the networks."""
    head = [
        "# torch.compile with plans",
        "",
        "`python benchmarks/torch_backend.py`",
        "",
        f"{machine}, {torch.get_num_threads()} threads. {note}".strip(),
        "",
        "The networks compute in float32 and have random weights: ResNet-50 on one picture of 224 × 224, BERT-base",
        f"on 128 words with a mask, and GPT-2, whose `generate()` chooses {NEW_TOKENS} words after 32 given ones. The",
        "backends run in turns. Times of runs are medians, in milliseconds. The first call includes the compilation,",
        "in seconds.",
        f"Differences from PyTorch's result are parts of its largest magnitude, and at most {TOLERANCE:g} is allowed.",
        "A dash stands for what was not measured.",
        "",
        "| network | PyTorch | inductor | candle | candle ÷ PyTorch | candle ÷ inductor | first call, inductor "
        "| first call, candle | difference, inductor | difference, candle | runs |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    main()
