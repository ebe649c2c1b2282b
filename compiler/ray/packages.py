"""Imports Ray where a program uses it."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compiler.errors import Error

__all__ = ["assigned", "connected", "placed", "response", "serve"]


@contextmanager
def connected() -> Iterator[Any]:
    """The package `ray`, connected to a cluster.

    If the program is not connected yet, the function connects to the cluster that `RAY_ADDRESS` names or that runs on
    this machine. If there is none, it starts one in this machine's processes, which ends with the context.

    Raises:
        Error: Ray is not installed.
    """
    ray = _imported("ray")
    is_own = not ray.is_initialized()
    if is_own:
        ray.init(include_dashboard=False, logging_level=logging.WARNING, log_to_driver=False)
    try:
        yield ray
    finally:
        if is_own:
            ray.shutdown()


def serve() -> Any:
    """The module `ray.serve`.

    Raises:
        Error: Ray is not installed.
    """
    return _imported("ray.serve")


def response(body: bytes, kind: str, status: int) -> Any:
    """A response of HTTP. Ray Serve requires its package, starlette."""
    return _imported("starlette.responses").Response(body, status, media_type=kind)


def assigned() -> tuple[str, int | None]:
    """The device and the number of threads that Ray has assigned to this process.

    The device is "cuda" in an actor or task with a GPU. Elsewhere than in an actor or task, the number is `None`.
    """
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return "cpu", None
    context = ray.get_runtime_context()
    if context.get_actor_id() is None and context.get_task_id() is None:
        return "cpu", None
    device = "cuda" if context.get_accelerator_ids().get("GPU") else "cpu"
    return device, max(1, int(context.get_assigned_resources().get("CPU", 0)))


def placed(device: str | None, threads: int | None) -> tuple[str, int | None]:
    """The device and the number of threads that a program has chosen, or else those that Ray has assigned."""
    own_device, own_threads = assigned()
    return own_device if device is None else device, own_threads if threads is None else threads


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Error('Ray is not installed: run pip install "candle-compiler[ray]"') from error
