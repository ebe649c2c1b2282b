"""Checks plans on a GPU against the processor, and times them: all that needs one, in one command.

`make cuda-bundle` gathers what this needs, in build/cuda-check; here NumPy, ml_dtypes and click are enough, and PyTorch
for the times beside it. Results go to benchmarks/results/cuda.md; exit code 1 when one differs.

Models run in a process of their own, since an error of which a GPU does not recover ends all that comes after it there;
the next model then has another.
"""

from __future__ import annotations

import gzip
import importlib
import json
import lzma
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "build/cuda-check"
PAGE = ROOT / "benchmarks/results/cuda.md"
SANITIZED = ("super_resolution_pt", "dtln_model_1", "ultraface_rfb320", "digits")
"""Models that run under compute-sanitizer, which takes some hundred times as long."""
SECONDS = 420
"""What all sections may take together; the later ones end early."""
PATIENCE = 60
"""Seconds that one model may take, the first one's kernels being compiled by the driver among them."""
RUNS, WARM = 50, 5

os.environ.setdefault("CUDA_CACHE_PATH", str(BUNDLE / "jit"))
sys.path.insert(0, str(ROOT))
import click  # noqa: E402

import compiler  # noqa: E402

for packed in BUNDLE.glob("*.so.xz"):
    if not (extension := packed.with_suffix("")).exists():
        extension.write_bytes(lzma.decompress(packed.read_bytes()))
compiler.__path__.append(str(BUNDLE))

from drawn import filled  # noqa: E402

from compiler.compare import compare  # noqa: E402

START = time.monotonic()


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, show_default=True, help="Where results go.")
@click.option("--run", "section", help="Run the models of one file of the bundle from a number on, and nothing else.")
@click.option("--start", default=0)
@click.option("--only", help="Run this model alone.")
def main(device: str, page: Path, section: str | None, start: int, only: str | None) -> None:
    """Check and time the plans of build/cuda-check on a device."""
    if section:
        run(section, device, start, only)
        return
    lines = ["# On a GPU", "", *machine(device), ""]
    for title, part in SECTIONS.items():
        lines += [f"## {title}", ""]
        try:
            for line in part(device):
                print(line, flush=True)
                lines.append(line)
                page.write_text("\n".join(lines) + "\n")
        except Exception as error:  # the other sections still say something
            lines.append(f"✗ {one_line(error)}")
        lines.append("")
    page.write_text("\n".join(lines).rstrip() + "\n")
    wrong = sum("✗" in line for line in lines)
    sys.exit(f"{wrong} lines are marked ✗" if wrong else 0)


def machine(device: str) -> list[str]:
    """What ran, and where."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True).stdout.strip() if shutil.which(query[0]) else device
    commit = (BUNDLE / "commit").read_text().strip()
    return [f"`make cuda-check` at {commit} on {gpu}, {time.strftime('%Y-%m-%d')}."]


def run(section: str, device: str, start: int, only: str | None) -> None:
    """In a process of its own: one line of JSON for each model."""
    for number, model in enumerate(read(section)):
        if number < start or (only and model["name"] != only):
            continue
        try:
            result = checked(model, device, times=section == "zoo" and not only)
        except Exception as error:
            result = {"verdict": "✗", "note": one_line(error)}
        print(json.dumps({"number": number, "name": model["name"], **result}), flush=True)


def checked(model: dict[str, Any], device: str, *, times: bool) -> dict[str, Any]:
    """How far the device's results are from the processor's, what the host runs, and what a run takes on both."""
    plan = compiler.Plan(model["plan"])
    here, there = compiler.load(plan, threads=1), compiler.load(plan, device=device, threads=1)
    verdict, off = "✓", 0.0
    for number, case in enumerate(model["cases"]):
        wanted, found = here.run(case), there.run(case)
        report = compare(wanted, found, model["tolerance"])
        off = max(off, report.worst)
        if not report.equal:
            # Both are rounded: then it is as near to onnxruntime's as the processor's has to be.
            expected = model.get("expected", [])
            near = number < len(expected) and compare(expected[number], found, model["allowed"]).equal
            verdict = "≈" if near and verdict != "✗" else "✗"
    hosted = Counter(step.host for step in there.host_steps)
    missing = sorted({step.op for step in there.host_steps if step.host == "no_kernel"})
    case = model["cases"][0]
    taken = [1e3 * median(lambda session=session: session.run(case)) for session in (there, here)] if times else []
    return {
        "verdict": verdict,
        "off": off,
        "cases": len(model["cases"]),
        "hosted": dict(hosted),
        "missing": missing,
    } | ({"ms": taken} if times else {})


def results(section: str, device: str) -> Iterator[dict[str, Any]]:
    """What `run` says of every model of a file; where its process ends or hangs, the model that it was at is wrong."""
    models = [model["name"] for model in read(section)]
    start = 0
    while start < len(models):
        command = [sys.executable, __file__, "--run", section, "--device", device, "--start", str(start)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            patience = threading.Timer(PATIENCE, process.kill)
            patience.start()
            is_renewed = False
            for line in process.stdout:
                patience.cancel()
                result = json.loads(line)
                start = result["number"] + 1
                yield result
                is_renewed = is_beyond_recovery(result)
                if is_renewed or time.monotonic() - START > SECONDS:
                    process.kill()
                    break
                patience = threading.Timer(PATIENCE, process.kill)
                patience.start()
            patience.cancel()
            told = process.stderr.read().strip().splitlines()[-1:]
        if time.monotonic() - START > SECONDS:
            return
        if process.returncode != 0 and start < len(models) and not is_renewed:
            yield {"name": models[start], "verdict": "✗", "note": f"its process ended: {' '.join(told)}"}
            start += 1


def is_beyond_recovery(result: dict[str, Any]) -> bool:
    """Whether what a model says is an error after which nothing runs in its process."""
    return any(
        word in result.get("note", "") for word in ("ILLEGAL", "LAUNCH_FAILED", "MISALIGNED", "CUDA_ERROR", "cuBLAS")
    )


def zoo(device: str) -> Iterator[str]:
    """Every model of the zoo against the processor, and what a run takes."""
    yield "| model | inputs | result | off, of what is allowed | ms | on the processor, 1 thread | host steps |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for result in results("zoo", device):
        if "note" in result:
            yield f"| {result['name']} | | ✗ {result['note']} | | | | |"
            continue
        hosted = ", ".join(f"{count} {reason}" for reason, count in result["hosted"].items())
        ms = [f"{each:.2f}" for each in result["ms"]]
        cells = [result["name"], str(result["cases"]), result["verdict"], f"{result['off']:.2g}", *ms, hosted]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "✓ equals the processor's result within the tolerance; ≈ is as near to onnxruntime's as that has to be."


def operators(device: str) -> Iterator[str]:
    """Every test of an operator against the processor."""
    found = list(results("operators", device))
    wrong = [result for result in found if result["verdict"] != "✓"]
    left = len(read("operators")) - len(found)
    untold = f"; ✗ time was up before {left} others" if left else ""
    yield f"{len(found) - len(wrong)} of {len(found)} tests of operators equal the processor's results{untold}."
    yield ""
    for result in wrong:
        said = result.get("note") or f"off by {result['off']:.2g} of what is allowed"
        yield f"- ✗ {result['name']}: {said}"
    missing = Counter(op for result in found for op in result.get("missing", ()))
    named = ", ".join(f"{op} ({number})" for op, number in missing.most_common())
    yield f"Steps without a kernel, by op and the number of tests: {named or 'none'}."


def sanitizer(device: str) -> Iterator[str]:
    """Some models under compute-sanitizer."""
    program = shutil.which("compute-sanitizer", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    if program is None or device == "emulator":
        yield "compute-sanitizer is not here."
        return
    for name in SANITIZED:
        left = SECONDS - (time.monotonic() - START)
        if left < 20 or all(model["name"] != name for model in read("zoo")):
            continue
        command = [program, "--tool", "memcheck", sys.executable, __file__, "--run", "zoo", "--only", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=min(left, 2 * PATIENCE))
        except subprocess.TimeoutExpired:
            yield f"- {name}: it took too long."
            continue
        if "Device not supported" in done.stdout + done.stderr:
            yield "compute-sanitizer does not support the device here."
            return
        summary = next((line for line in done.stdout.splitlines() if "ERROR SUMMARY" in line), done.stderr[-300:])
        is_clean = "ERROR SUMMARY: 0 errors" in summary and '"verdict": "\\u2717"' not in done.stdout
        yield f"- {'✓' if is_clean else '✗'} {name}: {summary.strip('= ')}"


def beside_torch(device: str) -> Iterator[str]:
    """Architectures beside the same network in PyTorch, eager, in float32 on the same GPU; weights are noise."""
    try:
        import torch
    except ImportError:
        yield "PyTorch is not here."
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    where = "cuda" if torch.cuda.is_available() and device != "emulator" else "cpu"
    yield "| network | result | ms, with input and output brought over | PyTorch, ms, with its output | ÷ PyTorch |"
    yield "| --- | --- | --- | --- | --- |"
    for model in read("architectures"):
        if time.monotonic() - START > SECONDS:
            yield f"| {model['name']} | time was up | | | |"
            continue
        try:
            module = importlib.import_module(f"models.{model['name']}")
        except ImportError as error:
            yield f"| {model['name']} | {one_line(error)} | | | |"
            continue
        network, given = module.build().to(where), [each.to(where) for each in module.inputs().values()]
        plan, case = compiler.Plan(filled(model)), model["cases"][0]
        here, there = compiler.load(plan), compiler.load(plan, device=device, threads=1)

        def eager(network: Any = network, given: Any = given) -> Any:
            with torch.inference_mode():
                output = network(*given)
            return (output if isinstance(output, torch.Tensor) else output[0]).cpu()

        report = compare(here.run(case), there.run(case), model["tolerance"])
        result = "✓" if report.equal else f"✗ off by {report.worst:.2g} of what is allowed"
        ours, theirs = median(lambda s=there, c=case: s.run(c)), median(eager)
        yield f"| {model['name']} | {result} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} | {ours / theirs:.2f} |"


SECTIONS: dict[str, Callable[[str], Iterator[str]]] = {
    "The zoo": zoo,
    "Operators": operators,
    "Beside PyTorch": beside_torch,
    "compute-sanitizer": sanitizer,
}


def read(name: str) -> list[dict[str, Any]]:
    """Plans with inputs, as `tools/cuda_bundle.py` wrote them."""
    with gzip.open(BUNDLE / f"{name}.pickle.gz") as file:
        models: list[dict[str, Any]] = pickle.load(file)
    return models


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


def one_line(error: Exception) -> str:
    """An error as a cell of a table."""
    return " ".join(str(error).replace("|", "/").split()) or type(error).__name__


if __name__ == "__main__":
    main()
