"""A page as a reader takes it in: elements, text and data, read with the standard library's own parser."""

import json
from html.parser import HTMLParser
from typing import Any

_EMPTY = ("meta", "br", "img", "input", "link")


class Page(HTMLParser):
    """The elements of a page by tag with their attributes, its visible text, and what its scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self._open:
            self.scripts[-1] += data
        elif "style" not in self._open:
            self.text += data
            if self._open and ("td" in self._open or "th" in self._open):
                self.cells[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self) -> Any:
        """What the script of the page draws."""
        return json.loads(self.scripts[0])

    def rows(self, grid: str) -> list[list[str]]:
        """The texts of all rows of a table, also of those that only the script shows."""
        packed = self.data["grids"][grid]["rows"]
        return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in packed]
