"""The places of a page: the origins of nodes and steps, each once, with the class of the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler.ir.origin import Origin

__all__ = ["Places"]


class Places:
    """A list of places, which data refer to by index. `classes` maps the paths of modules to their classes."""

    def __init__(self, classes: Mapping[str, str] | None = None) -> None:
        self._classes = classes or {}
        self._found: dict[tuple[tuple[str, ...], str, str], int] = {}

    def of(self, origin: Origin) -> int:
        """The index of an origin."""
        return self.index(origin.nodes, origin.module, origin.source)

    def index(self, nodes: Iterable[str], module: str = "", source: str = "") -> int:
        """The index of the place with these nodes, this module and this line of Python."""
        return self._found.setdefault((tuple(nodes), module, source), len(self._found))

    @property
    def data(self) -> list[dict[str, Any]]:
        """The places as JSON data."""
        return [{"nodes": list(nodes), "module": module, "source": source} for nodes, module, source in self._found]

    @property
    def classes(self) -> dict[str, str]:
        """The known classes of the modules of the places, and of the modules that contain them."""
        modules = {module for _, module, _ in self._found}
        return {path: name for path, name in self._classes.items() if any(_is_in(each, path) for each in modules)}


def _is_in(module: str, path: str) -> bool:
    return module == path or module.startswith(f"{path}.")
