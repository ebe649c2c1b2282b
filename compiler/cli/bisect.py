"""`candlec bisect`: find the first optional pass after which a plan is wrong, and the first wrong step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.output import json_option
from compiler.cli.renamed import Verb
from compiler.cli.search import search_options

if TYPE_CHECKING:
    from pathlib import Path

    from compiler.cli.search import Search


@click.command(cls=Verb)
@click.argument("model", type=arguments.INPUT)
@search_options
@json_option
@click.pass_context
def command(context: click.Context, model: Path, search: Search, as_json: bool) -> None:
    """Find the optional pass that makes the plan of MODEL wrong, and the first wrong step.

    The command first compares the optimized plan with onnxruntime, as `candlec verify` does. If the plan differs, and
    the plan without optional passes does not, the command searches for the first optional pass after which the plan
    differs. It prints the places that this pass rewrote, and the first step of the plan whose value differs from
    onnxruntime's. It compares intermediate values as `candlec verify --layerwise` does. With --good, it compares with
    the results and the values of an older plan instead.

    With -o, it also writes three files. step.onnx is the part of the model that computes the value of this step.
    step.npz holds the inputs of this part. `python replay.py` compares the results of this part with onnxruntime's.
    If the weights of this part are large, they are in a fourth file, step.data.

    For a model of more than 1 GiB, the command writes the plans to temporary files, in the folder of the variable
    TMPDIR or in /tmp.

    With --what crash, the command looks for an unexpected exception, a run that fails, or a process that dies. It
    compiles and runs the model in processes of their own. A model that the compiler refuses does not count as a crash.

    The other searches compare the plan with a reference, the good side (see below). With --what memory, the command
    looks for the pass after which the peak memory of a run exceeds the peak of the good side, and for the first step
    that exceeds this peak. With --what time, it runs the plan and the good side in turn, prints the ratio of their
    times with its quartiles, and looks for the pass that adds most of the increase. If the noise is too large to tell
    whether the plan is slower, it says so. With --what steps, it looks for the pass that gives the plan other steps or
    other forms of kernels than the good side. This happens, for example, if a rule of the pass no longer applies.

    The good side is the plan without optional passes, the older plan of --good, or the recorded facts of --facts. Facts
    count the rewrites of each pass. They are therefore the surest way to find a pass that rewrites too little. Without
    facts, the command follows the steps of the older plan through the passes, and uses near misses.

    The exit code is 0 if the command found nothing, and 1 if it found something.

    \b
    candlec bisect model.onnx
    candlec bisect model.onnx --input io.npz -o build/step
    candlec bisect model.onnx --what crash
    candlec bisect model.onnx --what memory --dim batch=1
    candlec bisect model.onnx --what time --good old.plan --input io.npz
    candlec bisect models/digits.onnx --what steps --facts models/facts.toml
    """
    from compiler.cli.tables.bisect import show_crash, show_error, show_found

    search.check_usage()
    is_random = search.given.is_random
    if search.what == "crash":
        crash = search.crash(model)
        show_crash(model, crash, as_json, is_random=is_random)
        context.exit(0 if crash is None else 1)
    if search.what != "error":
        found = search.change(model)
        show_found(model, found, as_json)
        context.exit(1 if found.is_wrong else 0)
    wrong, part = search.error(model)
    show_error(model, wrong, part, as_json, is_random=is_random, good=search.good)
    context.exit(0 if wrong.report.ok else 1)
