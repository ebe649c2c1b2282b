"""The worklist of the driver of rules: first all nodes, then the nodes around each change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import onnx_ir as ir

__all__ = ["Worklist"]


class Worklist:
    """The nodes in the order of their visits. A node is in the queue at most once.

    A change queues the new nodes and their readers at once. The other nodes around it wait until the queue is empty.
    The driver therefore visits a region with many changes again once, not once for each change.
    """

    def __init__(self, roots: Iterable[ir.Node], is_root: Callable[[ir.Node], bool], depth: int) -> None:
        """Visits the roots, and after changes other nodes for which `is_root` is true.

        A visit reads `depth` levels of nodes, including the node's own.
        """
        self._is_root, self._depth = is_root, depth
        self._queue = deque(roots)
        self._queued = set(self._queue)
        self._changed: dict[ir.Node, None] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[ir.Node]:
        """Yields the nodes to visit that are still in a graph, until no node is queued and no change is left."""
        while self._queue or self._changed:
            if not self._queue:
                self._queue_affected()
                continue
            node = self._queue.popleft()
            self._queued.discard(node)
            if node.graph is not None:
                yield node

    def changed(self, nodes: Iterable[ir.Node], values: Iterable[ir.Value]) -> None:
        """Records a change: `nodes` are new or read other values, and `values` lost a reader."""
        for node in nodes:
            self._add(node)
            self._changed[node] = None
        for value in values:
            producer = value.producer()
            if producer is not None:
                self._changed[producer] = None

    def _queue_affected(self) -> None:
        """Queues the changed nodes, and every node whose visit reads one of them."""
        level, seen = self._changed, dict(self._changed)
        self._changed = {}
        for _ in range(self._depth):
            for node in level:
                self._add(node)
            readers = (use.node for node in level for value in node.outputs for use in value.uses())
            level = {node: None for node in readers if node not in seen}
            seen |= level

    def _add(self, node: ir.Node) -> None:
        if node.graph is not None and node not in self._queued and self._is_root(node):
            self._queued.add(node)
            self._queue.append(node)
