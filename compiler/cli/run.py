"""`candlec run`: run a plan on arrays from files, or on random ones."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from compiler import array_files
from compiler.atomic_files import write_whole
from compiler.cli import arguments, custom, states
from compiler.cli.input_options import Given, given_options
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, json_option, print_json, shape_text, table, working
from compiler.cli.renamed import Verb
from compiler.cli.tables.placement import show_missing
from compiler.errors import Error

if TYPE_CHECKING:
    from compiler import Plan
    from compiler.plan.state import Asked
    from compiler.runtime.session import Memory, Session
    from compiler.runtime.steps import Peaks, StepTime

PROFILED_RUNS = 10


@dataclass(frozen=True)
class Loading:
    """How to load a plan."""

    device: str
    strict_device: bool
    threads: int | None
    max_memory: int | None
    packing: Memory
    weights: Path | None

    def load(self, plan: Plan | Path) -> Session:
        """A session that runs the plan."""
        import compiler

        try:
            return compiler.load(
                plan,
                self.device,
                self.threads,
                self.strict_device,
                max_memory=self.max_memory,
                memory=self.packing,
                weights=self.weights,
            )
        except ValueError as error:
            if getattr(error, "kind", None) == "weights":
                raise Error(str(error)) from None
            raise


loading_options = grouped(
    "loading",
    Loading,
    arguments.device_option,
    arguments.strict_device_option("Fail if the GPU has no kernel for a step, instead of running the step on the CPU."),
    arguments.threads_option,
    arguments.memory_option(
        "Limit the memory of all values of a run, for example 2GB. If the plan has a limit too, the lower limit "
        "applies."
    ),
    arguments.packing_option,
    click.option(
        "--weights",
        type=arguments.INPUT,
        metavar="FILE",
        help="Replace weights with those of the same name in this safetensors or GGUF file. The plan must come "
        "from `candlec compile --keep-weights`.",
    ),
)


@dataclass(frozen=True)
class Kind:
    """How to run a plan: once, or `steps` times with a state; and whether to time its steps."""

    timeout: float | None
    profile: bool
    steps: int | None
    asked: Asked | None

    def check_usage(self, loading: Loading) -> None:
        """Refuse options that do not go together."""
        if loading.strict_device and loading.device == "cpu":
            raise click.UsageError("--strict-device needs another device than the CPU: add --device cuda")
        if self.asked is not None and self.steps is None:
            raise click.UsageError("--state is for several runs: add --steps N")
        if self.profile and self.steps is not None:
            raise click.UsageError("--profile times single runs: leave out --steps")

    def run(self, session: Session, given: Given) -> Ran:
        """Run the session's plan."""
        if self.steps is not None:
            runs = states.Runs(session, self.steps, given)
            with given.suggest_sizes(session.inputs):
                outputs = runs.run(self.timeout)
            return Ran({}, outputs, runs.seconds, runs)
        arrays = given.arrays(session.inputs)
        start = time.perf_counter()
        with given.suggest_sizes(session.inputs):
            outputs = session.run(arrays, timeout=self.timeout)
        return Ran(arrays, outputs, time.perf_counter() - start)


kind_options = grouped(
    "kind",
    Kind,
    click.option(
        "--timeout",
        type=arguments.Finite(0, min_open=True),
        metavar="SECONDS",
        help="Limit each run to this time. A run ends between two operations of the plan.",
    ),
    click.option("--profile", is_flag=True, help="Time every step over ten additional runs."),
    click.option(
        "--steps",
        type=arguments.Whole(1),
        metavar="N",
        help="Run the plan N times. Each run continues from the state of the previous run, such as the caches of a "
        "language model. Every run gets the inputs of --input. A file of --input may also hold the first values of the "
        "state.",
    ),
    states.state_option(
        "With --steps, define the state of a plan that was compiled without --state: a pair of names, as "
        "'present.*=past.*', or auto for the names that exporters write. May be repeated."
    ),
)


@dataclass(frozen=True)
class Ran:
    """The inputs, the outputs and the time of a run; or the outputs of the last of several `runs`, and their time."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]
    seconds: float
    runs: states.Runs | None = None


@click.command(cls=Verb)
@click.argument("plan", type=arguments.INPUT)
@given_options
@click.option(
    "-o", "--output", type=arguments.OUTPUT, metavar="FILE", help="Write the outputs to an .npz or .safetensors file."
)
@loading_options
@kind_options
@custom.custom_option
@json_option
def command(plan: Path, given: Given, output: Path | None, loading: Loading, kind: Kind, as_json: bool) -> None:
    """Run PLAN, and show the dtype, shape and range of each output.

    Without --input, the inputs are random arrays of the declared shapes. A symbolic dimension is a dimension with a
    name instead of a size; --size sets its size.

    The files of --output can be inputs of another run. NumPy lacks some dtypes, such as bfloat16. For such a dtype, the
    .npz file holds the bits in a structured array with one field, which is named after the dtype. In Python,
    arrays["y"]["bfloat16"].view(ml_dtypes.bfloat16) reads such an array.

    \b
    candlec run model.plan --input io.npz --output out.npz
    candlec run model.plan --input image=cat.npy --threads 4
    candlec run model.plan --size batch=8 --profile
    candlec run model.plan --timeout 10 --max-memory 2GB
    candlec run model.plan --device cuda --strict-device
    candlec run decoder.plan --steps 100 --state auto
    candlec run model.plan --weights tuned.safetensors
    candlec run model.plan --custom my_operators.py
    """
    kind.check_usage(loading)
    if output is not None and output.suffix not in array_files.SUFFIXES:
        raise click.BadParameter(f"{output} is neither an .npz nor a .safetensors file", param_hint="--output")
    arguments.check_outputs({"--output": output}, [plan, *given.files])
    session = loading.load(states.with_state(plan, kind.asked))
    ran = kind.run(session, given)
    if output is not None:
        write_whole(output, array_files.pack(ran.outputs, output))
    profiled = _profiled(session, ran.inputs) if kind.profile else None
    if as_json:
        print_json({"ok": True, **_data(session, ran), **_profile_data(profiled)})
        return
    _show(session, ran, output)
    if profiled:
        from compiler.cli.tables.profile import show_profile

        show_profile(*profiled, PROFILED_RUNS)


def _data(session: Session, ran: Ran) -> dict[str, Any]:
    hosted = [asdict(step) for step in session.host_steps]
    return {
        "device": session.device,
        "fallback_reason": session.fallback_reason,
        "host_steps": hosted,
        **({} if ran.runs is None else ran.runs.facts()),
        "seconds": ran.seconds,
        "outputs": [_summary(name, value) for name, value in ran.outputs.items()],
    }


def _show(session: Session, ran: Ran, output: Path | None) -> None:
    """Print the outputs, the time, and what ran where."""
    columns = ("output", "dtype", "shape", ">min", ">mean", ">max")
    table(columns, ([*_cells(_summary(name, value))] for name, value in ran.outputs.items()))
    what = f"{1e3 * ran.seconds:.2f} ms" if ran.runs is None else str(ran.runs)
    console.print(f"{what} on {session.device}" + (f", written to {output}" if output else ""), soft_wrap=True)
    if session.fallback_reason:
        console.print(f"auto chose {session.device}: {session.fallback_reason}", soft_wrap=True)
    show_missing(session.device, session.host_steps)


def _profiled(session: Session, inputs: dict[str, Any]) -> tuple[list[StepTime], Peaks | None]:
    """The time of every step, and the processor's peaks if the session runs on the CPU."""
    from compiler.bench.peaks import peaks_of

    with working("timing the steps"):
        return session.profile(inputs, PROFILED_RUNS), peaks_of(session) if session.device == "cpu" else None


def _profile_data(profiled: tuple[list[StepTime], Peaks | None] | None) -> dict[str, Any]:
    if profiled is None:
        return {}
    steps, peaks = profiled
    return {"runs": PROFILED_RUNS, "peaks": asdict(peaks) if peaks else None, "steps": [asdict(step) for step in steps]}


def _summary(name: str, value: Any) -> dict[str, Any]:
    """The dtype, shape and range of an output."""
    if not isinstance(value, np.ndarray):
        items = "none" if value is None else f"sequence of {len(value)}"
        return {"name": name, "dtype": items, "shape": None}
    summary = {"name": name, "dtype": "string" if value.dtype == object else value.dtype.name, "shape": value.shape}
    if value.size and value.dtype != object:
        numbers = value.astype(np.float64)
        summary |= {"min": float(numbers.min()), "mean": float(numbers.mean()), "max": float(numbers.max())}
    return summary


def _cells(summary: dict[str, Any]) -> list[str]:
    numbers = [f"{summary[key]:.4g}" if key in summary else "" for key in ("min", "mean", "max")]
    return [
        summary["name"],
        summary["dtype"],
        "" if summary["shape"] is None else shape_text(summary["shape"]),
        *numbers,
    ]
