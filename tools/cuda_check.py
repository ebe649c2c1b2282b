"""Checks plans on a GPU against the processor, and times them: all that needs one, in one command.

`make cuda-bundle` gathers what this needs, in build/cuda-check; here NumPy, ml_dtypes and click are enough, and PyTorch
for the times beside it. Results go to benchmarks/results/cuda.md; exit code 1 when one differs.
"""

from __future__ import annotations

import gzip
import importlib
import pickle
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "build/cuda-check"
PAGE = ROOT / "benchmarks/results/cuda.md"
SANITIZED = ("super_resolution_pt", "dtln_model_1", "ultraface_rfb320", "digits")
"""Models that run under compute-sanitizer, which takes some hundred times as long."""
RUNS, WARM = 50, 5

sys.path.insert(0, str(ROOT))
import compiler  # noqa: E402

compiler.__path__.append(str(BUNDLE))

from compiler.compare import compare  # noqa: E402


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, show_default=True, help="Where results go.")
@click.option("--zoo-only", "names", multiple=True, help="Run these models of the zoo, and nothing else.")
def main(device: str, page: Path, names: tuple[str, ...]) -> None:
    """Check and time the plans of build/cuda-check on a device."""
    if names:
        wrong = [line for line in zoo(device, names) if "✗" in line]
        sys.exit("\n".join(wrong) if wrong else 0)
    lines = ["# On a GPU", "", *machine(device), ""]
    for title, section in SECTIONS.items():
        lines += [f"## {title}", ""]
        for line in section(device):
            print(line, flush=True)
            lines.append(line)
            page.write_text("\n".join(lines) + "\n")
        lines.append("")
    page.write_text("\n".join(lines).rstrip() + "\n")
    wrong = [line for line in lines if "✗" in line]
    sys.exit(f"{len(wrong)} lines are marked ✗" if wrong else 0)


def machine(device: str) -> list[str]:
    """What ran, and where."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True).stdout.strip() if shutil.which(query[0]) else device
    commit = (BUNDLE / "commit").read_text().strip()
    return [f"`make cuda-check` at {commit} on {gpu}, {time.strftime('%Y-%m-%d')}."]


def zoo(device: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Every model of the zoo against the processor, and what a run takes."""
    yield "| model | inputs | result | off, of what is allowed | ms | on the processor, 1 thread | host steps |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for model in read("zoo"):
        if names and model["name"] not in names:
            continue
        try:
            here, there = sessions(model, device)
            reports = [compare(here.run(case), there.run(case), model["tolerance"]) for case in model["cases"]]
        except compiler.Error as error:
            yield f"| {model['name']} | | ✗ {one_line(error)} | | | | |"
            continue
        worst = max(report.worst for report in reports)
        result = "✓" if all(report.equal for report in reports) else "✗"
        case = model["cases"][0]
        times = [] if names else [f"{1e3 * median(lambda s=s, c=case: s.run(c)):.2f}" for s in (there, here)]
        cells = [model["name"], str(len(reports)), result, f"{worst:.2g}", *times, hosted(there)]
        yield f"| {' | '.join(cells)} |"


def operators(device: str) -> Iterator[str]:
    """Every test of an operator against the processor."""
    count, differ, missing = 0, [], Counter[str]()
    for model in read("operators"):
        count += 1
        try:
            here, there = sessions(model, device)
            reports = [compare(here.run(case), there.run(case)) for case in model["cases"]]
        except compiler.Error as error:
            differ.append(f"- ✗ {model['name']}: {one_line(error)}")
            continue
        if not all(report.equal for report in reports):
            worst = max(report.worst for report in reports)
            differ.append(f"- ✗ {model['name']}: off by {worst:.2g} of what is allowed")
        missing.update({step.op for step in there.host_steps if step.host == "no_kernel"})
    yield f"{count - len(differ)} of {count} tests of operators equal the processor's results."
    if differ:
        yield ""
    yield from differ
    yield ""
    named = ", ".join(f"{op} ({number})" for op, number in missing.most_common())
    yield f"Steps without a kernel, by op and the number of tests: {named or 'none'}."


def sanitizer(device: str) -> Iterator[str]:
    """Some models under compute-sanitizer."""
    program = shutil.which("compute-sanitizer")
    if program is None or device != "cuda":
        yield "compute-sanitizer is not here, or the device is another."
        return
    for name in SANITIZED:
        if all(model["name"] != name for model in read("zoo")):
            continue
        command = [program, "--tool", "memcheck", "--error-exitcode", "9", sys.executable, __file__, "--zoo-only", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        summary = next((line for line in done.stdout.splitlines() if "ERROR SUMMARY" in line), done.stderr[-300:])
        yield f"- {'✓' if done.returncode == 0 else '✗'} {name}: {summary.strip('= ')}"


def beside_torch(device: str) -> Iterator[str]:
    """Architectures beside the same network in PyTorch, eager, in float32 on the same GPU."""
    try:
        import torch
    except ImportError:
        yield "PyTorch is not here."
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    where = "cuda" if torch.cuda.is_available() and device == "cuda" else "cpu"
    yield "| network | ms | PyTorch, ms | ÷ PyTorch | off, of PyTorch's scale |"
    yield "| --- | --- | --- | --- | --- |"
    for model in read("architectures"):
        module = importlib.import_module(f"models.{model['name']}")
        network, given = module.build().to(where), [each.to(where) for each in module.inputs().values()]
        session, case = sessions(model, device)[1], model["cases"][0]

        def eager(network: Any = network, given: Any = given) -> Any:
            with torch.inference_mode():
                output = network(*given)
            return (output if isinstance(output, torch.Tensor) else output[0]).cpu().numpy()

        found, expected = next(iter(session.run(case).values())), eager()
        off = float(abs(found - expected).max() / abs(expected).max())
        ours, theirs = median(lambda s=session, c=case: s.run(c)), median(eager)
        yield f"| {model['name']} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} | {ours / theirs:.2f} | {off:.1e} |"


SECTIONS: dict[str, Callable[[str], Iterator[str]]] = {
    "The zoo": zoo,
    "Operators": operators,
    "compute-sanitizer": sanitizer,
    "Beside PyTorch": beside_torch,
}


def read(name: str) -> list[dict[str, Any]]:
    """Plans with inputs, as `tools/cuda_bundle.py` wrote them."""
    with gzip.open(BUNDLE / f"{name}.pickle.gz") as file:
        models: list[dict[str, Any]] = pickle.load(file)
    return models


def sessions(model: dict[str, Any], device: str) -> tuple[Any, Any]:
    """The plan on one thread of the processor, and on the device."""
    plan = compiler.Plan(model["plan"])
    return compiler.load(plan, threads=1), compiler.load(plan, device=device, threads=1)


def median(run: Callable[[], Any]) -> float:
    """Seconds of a run, some having gone before; fewer where they are long."""
    start = time.perf_counter()
    for _ in range(WARM):
        run()
    runs = max(3, min(RUNS, int(2 * WARM / (time.perf_counter() - start))))
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def hosted(session: Any) -> str:
    """How many steps the host runs, by the reason."""
    reasons = Counter(step.host for step in session.host_steps)
    return f"{reasons['nature']} by nature, {reasons['no_kernel']} for want of a kernel"


def one_line(error: Exception) -> str:
    """An error as a cell of a table."""
    return " ".join(str(error).replace("|", "/").split())


if __name__ == "__main__":
    main()
