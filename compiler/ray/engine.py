"""Runs over the rows of files, whose batches run in Ray's workers.

This process reads the rows and writes the parts, as `compiler.batch.run_batch` does. It takes the results of the
batches in order, each once, so a batch that Ray runs again after the death of a worker is in one part.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.batch.batches import Batch, Work
from compiler.batch.run import checked, run_rows, sha256
from compiler.custom_modules import imported_modules
from compiler.errors import DeviceError, Error
from compiler.plan import Plan
from compiler.ray.packages import connected
from compiler.ray.worker import Description, Opening, Worker
from compiler.runtime.devices import is_known
from compiler.runtime.opening import validate_loading
from compiler.validate import validate_whole_number

if TYPE_CHECKING:
    from compiler.batch.settings import Progress, Settings, Summary

__all__ = ["run_batch"]

AHEAD = 2
"""The most batches that a worker has, so that it need not wait for the next one."""
RETRIES = 3
"""How often Ray runs a batch again if a worker dies."""


def run_batch(
    plan: Plan | str | os.PathLike[str],
    data: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    max_memory: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Runs a plan over the rows of files with workers on a Ray cluster.

    The arguments, the output and the errors are those of `compiler.batch.run_batch`, and either function continues a
    run of the other one. Each worker has a session with `threads` threads, by default 1, and reserves as many CPUs.
    With `device="cuda"`, it also reserves a GPU. `workers` is by default the number for which the cluster has CPUs or
    GPUs. Only this process reads the data and writes the output. A plan that is a path must have this path on each
    node. The cluster is the one that the program is connected to, that `RAY_ADDRESS` names, or that runs on this
    machine. If there is none, the function starts one on this machine for as long as it runs. If a worker dies, Ray
    starts it again, and runs its batches again, each at most three times.

    Raises:
        Error: as `compiler.batch.run_batch`; also if Ray is not installed, the cluster is too small, or a batch ends
            the process of its worker each time.
    """
    settings = checked(data, output, settings, progress, stop)
    threads, max_memory = validate_loading(plan, device, threads, max_memory)
    if workers is not None:
        workers = validate_whole_number("workers", workers, 1)
    given = plan if isinstance(plan, Plan) else Path(plan).absolute()
    digest = sha256(given)
    opening = Opening(given, digest, device, threads or 1, max_memory, imported_modules())
    with connected() as ray, _pool(ray, opening, workers) as pool:
        return run_rows(digest, data, output, settings, pool, progress, stop)


@contextmanager
def _pool(ray: Any, opening: Opening, workers: int | None) -> Iterator[Pool]:
    """The workers for a run, which end with the context.

    Raises:
        DeviceError: Ray does not place workers on this device.
        Error: the cluster has not enough CPUs or GPUs.
    """
    if not is_known(opening.device) or ":" in opening.device:
        raise DeviceError(f'device "{opening.device}": Ray chooses the GPUs of workers: write cpu, cuda or auto')
    has = ray.cluster_resources()
    cpus, gpus = int(has.get("CPU", 0)), int(has.get("GPU", 0))
    needs_gpu = opening.device == "cuda" or (opening.device == "auto" and gpus > 0)
    most = min(cpus // opening.threads, gpus if needs_gpu else cpus)
    if most < (workers or 1):
        requested = f"{workers or 1} worker{'s' * (workers not in (None, 1))} with {opening.threads} CPU each"
        gpu = " and a GPU each" if needs_gpu else ""
        raise Error(f"the Ray cluster has {cpus} CPUs and {gpus} GPUs, too few for {requested}{gpu}")
    resources = {"num_cpus": opening.threads, "num_gpus": int(needs_gpu)}
    actor = ray.remote(max_restarts=-1, max_task_retries=RETRIES, **resources)(Worker)
    actors = [actor.remote(opening) for _ in range(workers or most)]
    try:
        yield Pool(ray, actors)
    finally:
        for each in actors:
            ray.kill(each)


class Pool:
    """Runs batches in workers (`compiler.batch.engine.Engine`)."""

    def __init__(self, ray: Any, actors: Sequence[Any]) -> None:
        self._ray, self._actors = ray, actors
        found: Description = self._taken(actors[0].describe.remote(), "the first worker")
        self.inputs, self.outputs, self.device = found.inputs, found.outputs, found.device

    def results(self, work: Work, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The outputs of each batch, in order. If the data end with an error, it follows the results before it."""
        given = self._ray.put(work)
        sent: deque[tuple[Any, int, Batch]] = deque()
        unread: Error | OSError | None = None
        source = iter(batches)
        while True:
            try:
                batch = next(source, None)
            except (Error, OSError) as error:
                unread = error
                break
            if batch is None:
                break
            if len(sent) == AHEAD * len(self._actors):
                yield self._result(*sent.popleft())
            at = self._least_busy([(each, owner) for each, owner, _ in sent])
            sent.append((self._actors[at].run.remote(given, batch), at, batch))
        while sent:
            yield self._result(*sent.popleft())
        if unread is not None:
            raise unread

    def _least_busy(self, sent: Sequence[tuple[Any, int]]) -> int:
        """The worker with the fewest batches that are not finished."""
        busy = [0] * len(self._actors)
        if sent:
            refs = [each for each, _ in sent]
            _, running = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
            for each, owner in sent:
                busy[owner] += each in running
        return busy.index(min(busy))

    def _result(self, result: Any, _owner: int, batch: Batch) -> Batch:
        rows = f"{batch.rows[0]} to {batch.rows[-1]}" if len(batch.rows) else f"before {batch.end}"
        done: Batch = self._taken(result, f"the rows {rows} of all data")
        return done

    def _taken(self, result: Any, what: str) -> Any:
        """The value of a call of a worker. Raises the error of the call as in this process."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(result)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, Error | OSError | MemoryError):
                raise cause from None
            raise
        except errors.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise Error(f"{what}: the worker died, also after {RETRIES} more attempts: {reason}") from error
