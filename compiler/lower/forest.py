"""Decision trees as the nodes of the op `TreeEnsemble`, which has the test `x ≤ threshold` alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.lower.node import Node

Array = np.ndarray[Any, Any]

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {f"BRANCH_{name}": i for i, name in enumerate(["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])} | {"LEAF": LEAF}


@dataclass
class Forest:
    """The trees of a node of the model."""

    feature: Array
    """The feature that each node tests."""
    mode: Array
    """The test of each node, `LEQ` to `LEAF`."""
    split: Array
    """The number with which each node compares its feature, in the dtype of the computation."""
    missing: Array
    """Whether a NaN passes the test of each node."""
    yes: Array
    """The node after a test that is passed."""
    no: Array
    """The node after a test that is not passed."""
    roots: Array
    """The node of each tree where rows begin."""
    leaves: Array
    """The leaf of each weight."""
    targets: Array
    """The target of each weight."""
    weights: Array
    """The weights."""
    members: dict[int, Array]
    """The numbers that pass the test of each node with the mode `MEMBER`."""

    def packed(self, node: Node, targets: int) -> tuple[Array, Array, Array, Array, Array]:
        """The constants of the op: its nodes, thresholds, roots, targets and weights.

        Refuses graphs that are not trees, leaves without weights, and leaves that the op cannot have.
        """
        levels = self._levels(node)
        reached = np.concatenate(levels)
        counts = np.bincount(self.leaves, minlength=len(self.mode))
        leaf = reached[self.mode[reached] == LEAF]
        if (counts[leaf] == 0).any():
            node.refuse("CC0202", f"a leaf of {node.op_type} has no weight")
        if targets == 1 and (counts[leaf] > 1).any():
            node.refuse("CC0202", f"a leaf of {node.op_type} has several weights for one target")
        place_of, total = self._places(levels)
        if total >= 2**31:
            node.refuse("CC0202", f"the trees of {node.op_type} have {total} nodes, more than 2³¹")
        nodes = np.zeros((total, 4), np.int32)
        thresholds = np.zeros(total, self.split.dtype)
        self._write_tests(reached, place_of, nodes, thresholds)
        kept = np.argsort(place_of[self.leaves], kind="stable")
        kept = kept[((place_of[self.leaves] >= 0) & (self.mode[self.leaves] == LEAF))[kept]]
        leaf = leaf[np.argsort(place_of[leaf])]
        ends = np.cumsum(counts[leaf])
        nodes[place_of[leaf]] = np.stack([0 * ends - 1, 0 * ends, ends - counts[leaf], ends], 1)
        roots = place_of[self.roots].astype(np.int32)
        return nodes, thresholds, roots, self.targets[kept].astype(np.int32), self.weights[kept]

    def _levels(self, node: Node) -> list[Array]:
        """The nodes that rows can reach, level by level, of all trees."""
        seen = np.zeros(len(self.mode), bool)
        level, levels = self.roots, []
        while level.size:
            if seen[level].any() or len(np.unique(level)) < len(level):
                node.refuse("CC0202", f"two branches of {node.op_type} lead to the same node, or a branch leads back")
            seen[level] = True
            levels.append(level)
            inner = level[self.mode[level] != LEAF]
            level = np.concatenate([self.yes[inner], self.no[inner]])
        return levels

    def _places(self, levels: list[Array]) -> tuple[Array, int]:
        """The place of the first test of each node, −1 for nodes out of reach, and the number of tests.

        After the tests of a node come those of the nodes of its branch `no`, then those of the branch `yes`.
        """
        tests = np.where((self.mode == EQ) | (self.mode == NEQ), 2, 1)
        for place, members in self.members.items():
            tests[place] = 2 * len(np.unique(members))
        sizes = tests.copy()
        for level in reversed(levels):
            inner = level[self.mode[level] != LEAF]
            sizes[inner] += sizes[self.yes[inner]] + sizes[self.no[inner]]
        ends = np.cumsum(sizes[self.roots])
        places = np.full(len(self.mode), -1)
        places[self.roots] = ends - sizes[self.roots]
        for level in levels:
            inner = level[self.mode[level] != LEAF]
            places[self.no[inner]] = places[inner] + tests[inner]
            places[self.yes[inner]] = places[self.no[inner]] + sizes[self.no[inner]]
        return places, int(ends[-1])

    def _write_tests(self, reached: Array, place_of: Array, nodes: Array, thresholds: Array) -> None:
        """Writes the tests of all nodes but leaves."""
        below = _below(self.split)
        single = reached[self.mode[reached] <= GT]
        mode, at = self.mode[single], place_of[single]
        yes, no = place_of[self.yes[single]], place_of[self.no[single]]
        # `x ≥ t` is `x < t` with the branches exchanged, for a NaN too.
        turned = np.isin(mode, (GTE, GT))
        passes = self.missing[single] ^ turned
        branches = np.where(turned, no, yes), np.where(turned, yes, no)
        nodes[at] = np.stack([self.feature[single], passes, *branches], 1)
        thresholds[at] = np.where(np.isin(mode, (LT, GTE)), below[single], self.split[single])

        double = reached[np.isin(self.mode[reached], (EQ, NEQ))]
        differs, at = self.mode[double] == NEQ, place_of[double]
        yes, no = place_of[self.yes[double]], place_of[self.no[double]]
        yes, no = np.where(differs, no, yes), np.where(differs, yes, no)
        # `x = t` is `x ≤ t`, but not `x ≤` the number below t. A NaN differs from every number.
        passes = self.missing[double] & ~differs
        nodes[at] = np.stack([self.feature[double], passes, at + 1, no], 1)
        nodes[at + 1] = np.stack([self.feature[double], 0 * at, no, yes], 1)
        thresholds[at], thresholds[at + 1] = self.split[double], below[double]

        for place in reached[self.mode[reached] == MEMBER]:
            self._write_member(int(place), place_of, nodes, thresholds)

    def _write_member(self, place: int, place_of: Array, nodes: Array, thresholds: Array) -> None:
        """Writes a search tree for the set of a node. Between its sorted bounds, intervals fail and pass in turn."""
        members = np.unique(self.members[place])
        bounds = np.stack([_below(members), members], 1).ravel()
        branches = place_of[self.no[place]], place_of[self.yes[place]]
        free = int(place_of[place])
        waiting: list[tuple[int, int, int, int]] = [(0, len(bounds), -1, 0)]
        for first, end, parent, side in waiting:
            if first == end:
                nodes[parent, side] = branches[first % 2]
                continue
            middle = (first + end) // 2
            if parent >= 0:
                nodes[parent, side] = free
            # A NaN that passes goes to the first interval that passes.
            nodes[free, :2] = self.feature[place], self.missing[place] and middle >= 1
            thresholds[free] = bounds[middle]
            waiting += [(first, middle, free, 2), (middle + 1, end, free, 3)]
            free += 1


def _below(numbers: Array) -> Array:
    """The largest number below each; NaN, which no number is at most, if there is none."""
    none = np.array(np.nan, numbers.dtype)
    with np.errstate(over="ignore", under="ignore"):
        below: Array = np.where(np.isneginf(numbers), none, np.nextafter(numbers, np.array(-np.inf, numbers.dtype)))
    return below
