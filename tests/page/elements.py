"""The elements of a page, and the data in it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

__all__ = ["Elements", "data_in"]


class Elements(HTMLParser):
    """The elements of a page by name, with their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}, []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(texts)) for name, attributes, texts in self.found if name == tag]


def data_in(page: str) -> Any:
    """The data of a page."""
    [text] = [text for attributes, text in Elements(page).of("script") if attributes.get("id") == "data"]
    return json.loads(text)
