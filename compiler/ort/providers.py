"""Execution providers, and the device that they select."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from compiler.ort.names import CUDA_OPTIONS
from compiler.runtime.devices import has_cuda

__all__ = ["CPU", "CUDA", "device_of", "get_all_providers", "get_available_providers", "get_device"]

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def get_all_providers() -> list[str]:
    """The providers that a session may have."""
    return [CUDA, CPU]


def get_available_providers() -> list[str]:
    """The providers that a session may have in this build, on this machine. The function does not open a GPU."""
    return get_all_providers() if has_cuda() else [CPU]


def get_device() -> str:
    """`GPU` if CUDA is available, otherwise `CPU`."""
    return "GPU" if has_cuda() else "CPU"


def device_of(
    providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None,
    options: Sequence[Mapping[Any, Any]] | None,
) -> str:
    """Return the device of the first provider. Without a provider, this is the CPU.

    Raises:
        ValueError: the arguments are not lists of names and of options, of equal length.
        RuntimeError: a provider is unknown.
        NotImplementedError: an option of a provider is not supported.
    """
    named = [(name, _device(name, own)) for name, own in _pairs(providers, options)]
    return named[0][1] if named else "cpu"


def _pairs(
    providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None,
    options: Sequence[Mapping[Any, Any]] | None,
) -> list[tuple[str, dict[str, str]]]:
    """The names of the providers, each with its options as texts."""
    if providers is None:
        return []
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError(f"providers: expected a list of names, found {providers!r}")
    if options is not None and len(options) != len(providers):
        raise ValueError(f"provider_options: expected {len(providers)}, one for each provider, found {len(options)}")
    given = [(each, {}) if isinstance(each, str) else each for each in providers]
    if options is not None:
        given = list(zip(providers, options, strict=True))  # type: ignore[arg-type]  # the next line checks it
    for pair in given:
        if not (
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Mapping)
        ):
            raise ValueError(f"providers: expected a name, or a tuple of a name and a dict of options, found {pair!r}")
    return [(name, {str(key): str(value) for key, value in own.items()}) for name, own in given]


def _device(name: str, options: Mapping[str, str]) -> str:
    """The device of a provider."""
    if name not in get_all_providers():
        raise RuntimeError(f"Unknown Provider Type: {name}; the providers are {CUDA} and {CPU}")
    known = CUDA_OPTIONS if name == CUDA else {}
    for key in options:
        if key not in known:
            raise NotImplementedError(
                f"{name} has no option {key!r} here: "
                + (f"the options are {', '.join(known)}" if known else "leave it out")
            )
    number = options.get("device_id", "0")
    if not re.fullmatch("[0-9]{1,3}", number):
        raise ValueError(f"device_id: expected the number of a GPU, found {number!r}")
    if name == CPU:
        return "cpu"
    return "cuda" if int(number) == 0 else f"cuda:{int(number)}"
