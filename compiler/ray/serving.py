"""A plan behind HTTP, as a deployment of Ray Serve. Rows of several requests run together."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from compiler.errors import Error
from compiler.ray.answers import Answers, Request
from compiler.ray.messages import BINARY, JSON, packed, unpacked
from compiler.ray.packages import placed, response, serve
from compiler.runtime.opening import validate_loading
from compiler.runtime.session import load
from compiler.validate import validate_instance, validate_list, validate_seconds, validate_whole_number

if TYPE_CHECKING:
    from compiler.plan import Plan

__all__ = ["Served", "deployment"]


def deployment(
    plan: Plan | str | os.PathLike[str],
    *,
    max_batch_size: int = 32,
    batch_wait_timeout_s: float = 0.01,
    outputs: Sequence[str] | None = None,
    device: str | None = None,
    threads: int | None = None,
    max_memory: int | None = None,
    **options: Any,
) -> Any:
    """An application for `ray.serve.run`: POST requests with rows, which run together.

    A request is JSON (an object of nested lists by input) or a safetensors file (`application/octet-stream`). The first
    axis of each array holds the rows. The response has the format of the request. A run begins when `max_batch_size`
    requests wait, or `batch_wait_timeout_s` seconds after the first one, and has at most `max_batch_size` rows. A
    request that does not fit gets the status 400, one with a row for which a step fails 422, one of another type 415.
    A handle of the deployment has the method `predict`, which takes and returns dicts of arrays.

    `plan` is a `Plan`, or a path that every node has. `outputs` names the outputs to compute, by default all. `threads`
    is by default the number of CPUs of the replica's actor, and `device` is "cuda" if it has a GPU. `options` are those
    of `ray.serve.deployment`, such as `num_replicas` and `ray_actor_options={"num_cpus": 2, "num_gpus": 1}`.

    Raises:
        Error: Ray is not installed, or there is no device of this name.
        TypeError, ValueError: an argument has a wrong type or value, or Ray refuses an option.
    """
    max_batch_size = validate_whole_number("max_batch_size", max_batch_size, 1)
    validate_instance("batch_wait_timeout_s", batch_wait_timeout_s, Real, "a number of seconds")
    validate_seconds("batch_wait_timeout_s", batch_wait_timeout_s)
    if outputs is not None:
        validate_list("outputs", outputs)
    threads, max_memory = validate_loading(plan, "cpu" if device is None else device, threads, max_memory)
    given = plan if not isinstance(plan, str | os.PathLike) else os.path.abspath(plan)  # noqa: PTH100 (takes both)
    options = {"name": "plan", "max_ongoing_requests": 2 * max_batch_size, **options}
    made = serve().deployment(**options)(Served)
    loading = {"device": device, "threads": threads, "max_memory": max_memory}
    return made.bind(given, outputs, max_batch_size, batch_wait_timeout_s, loading)


class Served:
    """A replica: a session, and the requests that wait for the next run."""

    def __init__(
        self,
        plan: Plan | str,
        outputs: Sequence[str] | None,
        max_batch_size: int,
        batch_wait_timeout_s: float,
        loading: Mapping[str, Any],
    ) -> None:
        session = load(plan, *placed(loading["device"], loading["threads"]), max_memory=loading["max_memory"])
        self._answers = Answers(session, outputs, max_batch_size)
        batched = serve().batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        self._answer = batched(self._run)

    async def predict(self, inputs: Mapping[str, Any]) -> Request:
        """The outputs for some rows. The caller is a handle of the deployment.

        Raises:
            Error: an input does not fit its declaration, or a step fails.
        """
        answer: Request | Error = await self._answer(self._answers.checked(inputs))
        if isinstance(answer, Error):
            raise answer
        return answer

    async def __call__(self, request: Any) -> Any:
        """The response to a request of HTTP."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind not in (JSON, BINARY):
            return _refusal(415, f"the content type is {kind!r}: send {JSON} or {BINARY}")
        try:
            inputs = self._answers.checked(unpacked(await request.body(), kind, self._answers.inputs))
        except Error as error:
            return _refusal(400, str(error))
        answer: Request | Error = await self._answer(inputs)
        try:
            if isinstance(answer, Error):
                raise answer
            return response(packed(answer, kind), kind, 200)
        except Error as error:
            return _refusal(422, str(error))

    async def _run(self, requests: list[Request]) -> list[Request | Error]:
        """The answers. Other requests arrive meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, self._answers.of, requests)


def _refusal(status: int, reason: str) -> Any:
    return response(json.dumps({"error": reason}).encode(), JSON, status)
