"""`candlec compile`: an ONNX model → a plan file."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.output import console, json_option, megabytes, print_json, table, working

if TYPE_CHECKING:
    from compiler import Plan


@click.command(short_help="Compile an ONNX model into a plan.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="PLAN", help="The plan file.  [default: MODEL.plan]"
)
@arguments.dim_option
@click.option("--passes", metavar="LIST", help="Run only these optional passes, separated by commas.")
@click.option("--no-optimize", is_flag=True, help="Run only the passes that correctness needs.")
@click.option("--strip-origins", is_flag=True, help="Leave module paths and source lines out of the plan.")
@click.option(
    "--verify-passes", is_flag=True, help="Verify the graph after every pass, to find faults of the compiler."
)
@json_option
def command(
    model: Path,
    output: Path | None,
    sizes: dict[str, int],
    passes: str | None,
    no_optimize: bool,
    strip_origins: bool,
    verify_passes: bool,
    as_json: bool,
) -> None:
    """Compile MODEL (.onnx) into a plan, and tell what was done to it.

    A plan is one file that holds everything a run needs. The same model and options give the same bytes.

    \b
    candlec compile model.onnx
    candlec compile model.onnx -o build/model.plan --dim batch=1
    candlec compile model.onnx --passes fold_weight_norm,fuse_conv
    """
    import compiler

    options = compiler.Options(
        optimize=not no_optimize,
        passes=None if passes is None else [name for name in passes.split(",") if name],
        dims=sizes,
        strip_origins=strip_origins,
        verify_passes=verify_passes,
    )
    target = output or model.with_suffix(".plan")
    start = time.perf_counter()
    with working(f"compiling {model}"):
        plan = compiler.compile(model, options)
    seconds = time.perf_counter() - start
    plan.save(target)
    _tell(plan, target, seconds, as_json)


def _tell(plan: Plan, target: Path, seconds: float, as_json: bool) -> None:
    """What became of the model."""
    document = plan.document
    steps = Counter(next(iter(step["op"])) for step in document["main"]["steps"])
    size = len(plan.data)
    if as_json:
        print_json(
            {
                "ok": True,
                "plan": str(target),
                "bytes": size,
                "seconds": seconds,
                "passes": document["passes"],
                "steps": dict(steps),
            }
        )
        return
    table(("step", ">count"), ((name, str(count)) for name, count in steps.most_common()))
    console.print(f"{target}: {sum(steps.values())} steps, {megabytes(size)}, compiled in {seconds:.2f} s")
