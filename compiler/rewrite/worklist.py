"""The nodes that the driver of rules has to visit: all at first, then those around each change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import onnx_ir as ir

__all__ = ["Worklist"]


class Worklist:
    """Nodes in the order of their visits, each at most once at a time.

    A change queues the nodes that it makes and their readers at once. The nodes farther around wait until the queue is
    empty, so that a region of many changes is visited again once, not once for each change.
    """

    def __init__(self, nodes: Iterable[ir.Node], is_root: Callable[[ir.Node], bool], depth: int) -> None:
        """`is_root` says which nodes are worth a visit; a visit looks at `depth` nodes upward, the node included."""
        self._is_root, self._depth = is_root, depth
        self._queue = deque(filter(is_root, nodes))
        self._queued = set(self._queue)
        self._changed: dict[ir.Node, None] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[ir.Node]:
        """Every node that waits, and is still in a graph; ends when no change is left to look around."""
        while self._queue or self._changed:
            if not self._queue:
                self._look_around()
                continue
            node = self._queue.popleft()
            self._queued.discard(node)
            if node.graph is not None:
                yield node

    def changed(self, nodes: Iterable[ir.Node], values: Iterable[ir.Value]) -> None:
        """Notes a change: the nodes are new or read other values; the values lost a reader."""
        for node in nodes:
            self._add(node)
            self._changed[node] = None
        for value in values:
            producer = value.producer()
            if producer is not None:
                self._changed[producer] = None

    def _look_around(self) -> None:
        """Queues the changed nodes, and all from which a visit sees one of them."""
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
