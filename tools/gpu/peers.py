"""The same network in PyTorch: eager, replayed through a CUDA graph, or compiled; in float32, TF32 and half."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from gpu.results import one_line
from gpu.timing import Run
from gpu.torch_cuda import allow_tf32

MODES = ("f32", "tf32", "half")
WAYS = ("eager", "graph")
WARM = 3


def peers(
    torch: Any, network: Any, case: Mapping[str, Any], ways: Iterable[str] = WAYS, modes: Iterable[str] = MODES
) -> tuple[dict[str, Run], dict[str, str]]:
    """The runs by `way, mode, place`, and the reasons why others cannot run.

    A run from the host copies its inputs to the device and its outputs back. A resident run waits for the device.
    """
    runs: dict[str, Run] = {}
    untimed: dict[str, str] = {}
    network = network.cuda().eval()
    for mode in modes:
        for way in ways:
            try:
                peer = Peer(torch, network, case, mode)
                run = peer.prepared(way)
                run()
                runs |= {f"{way}, {mode}, resident": run, f"{way}, {mode}, host": peer.from_host(run)}
            except Exception as error:  # the others are still timed
                untimed[f"{way}, {mode}"] = one_line(error)[:300]
    return runs, untimed


class Peer:
    """A network in one mode, with inputs at fixed addresses on the device."""

    def __init__(self, torch: Any, network: Any, case: Mapping[str, Any], mode: str) -> None:
        self._torch, self._is_tf32 = torch, mode == "tf32"
        is_image = any(value.ndim == 4 and value.dtype.kind == "f" for value in case.values())
        self._host = [torch.from_numpy(value) for value in case.values()]
        if mode == "half":
            network = copy.deepcopy(network).half()
            self._host = [each.half() if each.is_floating_point() else each for each in self._host]
            if is_image:
                network = network.to(memory_format=torch.channels_last)
        self._network = network
        self._given = [each.cuda() for each in self._host]
        if mode == "half" and is_image:
            self._given = [
                each.to(memory_format=torch.channels_last) if each.ndim == 4 else each for each in self._given
            ]
        self._output: Any = None

    def prepared(self, way: str) -> Run:
        """A run whose inputs and outputs stay on the device."""
        if way == "compiled":
            self._network = self._torch.compile(self._network)
        return self._captured() if way == "graph" else self._forward

    def from_host(self, run: Run) -> Run:
        """The run with copies of its inputs to the device and of its outputs back."""

        def moved() -> Any:
            for place, each in zip(self._given, self._host, strict=True):
                place.copy_(each)
            run()
            return [each.cpu() for each in flat(self._output)]

        return moved

    def _forward(self) -> None:
        self._launch()
        self._torch.cuda.synchronize()

    def _launch(self) -> None:
        allow_tf32(self._torch, self._is_tf32)
        with self._torch.inference_mode():
            self._output = self._network(*self._given)

    def _captured(self) -> Run:
        torch = self._torch
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM):
                self._launch()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._launch()

        def replay() -> None:
            graph.replay()
            torch.cuda.synchronize()

        return replay


def flat(output: Any) -> list[Any]:
    """The tensors of an output."""
    return [each for item in output for each in flat(item)] if isinstance(output, tuple | list) else [output]
