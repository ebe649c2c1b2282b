"""`candlec zoo`: compile every model of a folder in every variant, and compare it with onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compiler.cli import compare, fetch, github, index, page, precision, slice, update
from compiler.cli.command_group import Group
from compiler.cli.folder import Selection, folder_options, runner_options
from compiler.cli.output import json_option
from compiler.cli.renamed import Verb
from compiler.cli.zoo_options import Checking, checking_options
from compiler.cli.zoo_problems import exit_code

if TYPE_CHECKING:
    from compiler.zoo.task_runs import TaskSettings


@click.group(cls=Group)
def command() -> None:
    """Check the models of a folder against onnxruntime. The file INDEX.json in the folder lists the models.

    INDEX.json is a list with one object for each model. `name` is the name of the model, `file` is the model file, and
    `cases` lists .npz files of inputs, or folders with the files input_0.pb, output_0.pb and so on. Without `cases`,
    the cases are the folders test_data_set_* next to the model. Paths are relative to the folder. An entry may have a
    `url` instead: see `candlec zoo fetch --help`. The optional key `tolerance`, with its `reason`, replaces the
    tolerance of the dtype. The optional key `uncertain` allows uncertain results (≈, see `candlec verify`), and gives
    the reason. The optional list `tags` has words for --only. Other keys are for human readers. `zoo index` writes such
    a file.

    The optional key `task` names measures of the model's task, such as {"measure": "top1", "output": "y", "at_least":
    1}. A result that does not reach a measure is different (✗), and no baseline allows it. The measures are `top1` and
    `top5` (the most probable classes), `cosine` (embeddings), `psnr` (images and signals, in decibels), `boxes`
    (detections) and `tokens` (greedy decoding). If you cannot change INDEX.json, write measures into a file, and name
    it with --measures.

    A baseline is a TOML file of your own that lists known differences. Use it for a folder whose INDEX.json you cannot
    change. It has one table for each model, with the `reason`. The entry `pinned` is for plans that are compiled for
    the input shapes of each case, and `unpinned` for plans with dynamic shapes (`zoo run --unpin`). Each entry has a
    `verdict` (`uncertain` or `different`) and `at_most`, the allowed multiple of the tolerance. For a model that the
    compiler refuses, an entry has `refused` instead, the list of the error codes.

    A file of facts is a TOML file. It lists facts of each model that must not change: the verdict, the sizes, the
    steps, the rewrites, and the kernels for each instruction-set level in the file. `zoo update --facts` writes it, and
    `zoo run --facts` compares the models with it. Such a file is for one kind of device. With --time, both commands
    also time each plan and onnxruntime: the file then has the plan's time in percent of onnxruntime's.

    \b
    candlec zoo index --zoo models
    candlec zoo fetch --zoo models
    candlec zoo run --zoo models
    candlec zoo run --zoo ../zoo --timeout 300 --memory-limit 4G --results zoo.jsonl --resume
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    candlec zoo run --zoo ../zoo --baseline zoo.toml
    candlec zoo update --zoo ../zoo --facts zoo.facts.toml
    candlec zoo run --zoo ../zoo --facts zoo.facts.toml --time
    candlec zoo compare before.jsonl after.jsonl
    candlec zoo page before.jsonl after.jsonl -o page.html
    candlec zoo slice zoo.facts.toml
    candlec zoo precision --zoo ../zoo
    """


command.add_command(compare.command, "compare")
command.add_command(fetch.command, "fetch")
command.add_command(index.command, "index")
command.add_command(page.command, "page")
command.add_command(precision.command, "precision")
command.add_command(slice.command, "slice")
command.add_command(update.command, "update")


@command.command(cls=Verb, short_help="Compare every model with onnxruntime.")
@folder_options
@checking_options
@runner_options
@json_option
@click.pass_context
def run(
    context: click.Context, selection: Selection, checking: Checking, settings: TaskSettings, as_json: bool
) -> None:
    """Compile each model, run it on each of its inputs, and compare every output with onnxruntime's.

    The command compiles each model with and without optimization, and runs it with one thread and with two, or with
    --device cuda on the GPU. A case is a file of inputs that INDEX.json lists. Without --unpin, the command compiles
    for the input shapes of each case; with --both, it checks both kinds of plans, and onnxruntime computes each case
    only once. `candlec verify --help` explains the marks.

    If a case has files of outputs, the outputs of each variant must also equal these outputs. A model that is not in
    the cache fails, and its result names the command that downloads the model.

    Each model has a process of its own. If the process crashes, takes longer than --timeout, or takes more memory than
    --memory-limit, the result of the model says so and names the last phase, such as the last pass or the case. The
    other models are not affected. The limit of memory does not count the memory that the process takes before it loads
    the model.

    --results writes each result to a file as soon as it is known. If the command ends early, the same command with
    --resume keeps these results and checks the other models. It also checks a model again if the model file, its
    inputs, the options, the compiler or onnxruntime have changed, or if the limit at which the model
    stopped has changed. `--only failed` checks again the models that failed in this file.

    The exit code is 1 if the compiler refuses a model, or if a result is different (✗) or uncertain (≈) and neither
    INDEX.json nor the baseline allows it. It is also 1 if the baseline lists a model that is equal now, or that is not
    in the folder. It is always 1 if a model has missing or invalid files, if onnxruntime cannot run it, or if its
    process crashes or reaches a limit.

    With --facts, the exit code is also 1 if a fact differs from this file, for the better or the worse, or if the file
    does not list the same models as the folder. If the file lacks the level of this processor, the command only says
    so.

    With --time, the command then times each model that has a plan, and compares the time with onnxruntime's. The exit
    code is also 1 if a model takes longer than the file of --facts allows. A time may exceed the recorded time by a
    tenth, and by more if the measurements are noisy. The command times a slower model again, and only the second result
    counts. It also times the compilation and the load of the plan, in classes: powers of two of the time in which
    onnxruntime creates a session. A class may grow by one, and by more if it is noisy. For a shorter time, the command
    only prints a note. A model that cannot be timed is an error. Run no other programs during the measurement. The page
    docs/zoo.md of the project explains the times with an example.

    With --profile, the command also runs the first case of each model step by step, ten times with one thread, one
    model at a time. The file of --results then has the time, the memory and the operations of each step, and
    `candlec zoo page` shows them. A model that cannot be profiled is an error.

    In a job of GitHub Actions (GITHUB_ACTIONS=true), the command also prints an annotation for each problem.

    \b
    candlec zoo run
    candlec zoo run --zoo models --unpin --junit zoo.xml
    candlec zoo run --zoo models --both
    candlec zoo run --zoo ../zoo --baseline zoo.toml --facts zoo.facts.toml
    candlec zoo run --zoo ../zoo --facts zoo.facts.toml --time
    candlec zoo run --jobs 4 --timeout 300 --memory-limit 4G --results zoo.jsonl
    candlec zoo run --results zoo.jsonl --resume
    candlec zoo run --results zoo.jsonl --only failed
    candlec zoo run --results zoo.jsonl --profile
    candlec zoo run --summary "$GITHUB_STEP_SUMMARY"
    candlec zoo run --only tag:speech --only op:Conv
    candlec zoo run --only @slice.txt
    candlec zoo run --device cuda
    """
    checking.check_usage(settings)
    judgments = checking.run(selection, settings)
    checking.report_on(judgments, selection.folder, as_json)
    for judgment in judgments.values():
        github.annotate(judgment.problems)
    context.exit(max(exit_code(judgment.endings, judgment.is_right) for judgment in judgments.values()))
