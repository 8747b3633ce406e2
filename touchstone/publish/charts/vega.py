"""Vega-Lite as plain dictionaries, in the words of Altair: every run draws a dozen charts.

Altair checks and copies a chart with all its rows at every step: with its import, that would cost a run a second. Tests
check the charts against the schema of Vega-Lite through Altair. Rows stay Polars frames until the chart is finished.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

Spec = dict[str, Any]

_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
# The other end of a bar or an area: its type is that of the first end.
_SECOND_ENDS = ("x2", "y2")


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a chart shows; as CSV they are a third of the size, for large grids of numbers."""

    frame: pl.DataFrame
    csv: bool = False

    @property
    def values(self) -> str | list[dict[str, Any]]:
        """The rows as Vega-Lite takes them."""
        return self.frame.write_csv() if self.csv else self.frame.to_dicts()


@dataclass(frozen=True)
class View:
    """One view of some rows: transforms, a mark and an encoding. Every method returns another view."""

    spec: Spec

    def encode(self, **channels: Any) -> "View":
        """Add channels: a `field`, what a field's name and type say, or a list of tooltips."""
        added = {name: _channel(name, given) for name, given in channels.items()}
        return View({**self.spec, "encoding": {**self.spec.get("encoding", {}), **added}})

    def mark(self, type: str, **properties: Any) -> "View":
        """Draw marks of a type, such as `point`."""
        return View({**self.spec, "mark": {"type": type, **properties}})

    def transform(self, **transform: Any) -> "View":
        """Add a transform, such as `filter="datum.n > 0"`."""
        return View({**self.spec, "transform": [*self.spec.get("transform", ()), transform]})

    def calculate(self, **expressions: str) -> "View":
        """Add fields that the reader's browser computes."""
        added = [{"calculate": expression, "as": name} for name, expression in expressions.items()]
        return View({**self.spec, "transform": [*self.spec.get("transform", ()), *added]})


def view(rows: Rows | None = None) -> View:
    """A view of the rows, without a mark."""
    return View({} if rows is None else {"data": rows})


def field(name_and_type: str, **properties: Any) -> Spec:
    """A field by its name and the first letter of its type.

    >>> field("model:N", title=None)
    {'field': 'model', 'type': 'nominal', 'title': None}
    """
    name, _, letter = name_and_type.rpartition(":")
    return {"field": name, "type": _TYPES[letter], **properties}


def value(constant: Any) -> Spec:
    """A constant in place of a field."""
    return {"value": constant}


def condition(test: str, then: Any, otherwise: Any) -> Spec:
    """One of two constants."""
    return {"condition": {"test": test, "value": then}, "value": otherwise}


def step(pixels: float, **properties: Any) -> Spec:
    """A width or height by the number of columns or rows."""
    return {"step": pixels, **properties}


def layer(*views: View, **properties: Any) -> Spec:
    """Views on top of each other. Rows that all of them share are those of the layers, so that they share an order."""
    specs = [each.spec for each in views]
    shared = specs[0].get("data")
    if all(each.get("data") is shared for each in specs):
        specs = [{name: part for name, part in each.items() if name != "data"} for each in specs]
        properties |= {} if shared is None else {"data": shared}
    return {"layer": specs, **properties}


def _channel(name: str, given: Any) -> Any:
    if not isinstance(given, str):
        return given
    found = field(given)
    return {"field": found["field"]} if name in _SECOND_ENDS else found


def finished(spec: Spec) -> Spec:
    """The chart as Vega-Lite that can be written as JSON: its rows by name in `datasets`."""
    shown, tables = _with_named_rows(spec)
    return {**shown, "datasets": {name: rows.values for name, rows in tables.items()}}


def _with_named_rows(spec: Spec) -> tuple[Spec, dict[str, Rows]]:
    """The chart without its rows, and the rows by the names that it has for them."""
    names: dict[Rows, str] = {}

    def named(node: Any) -> Any:
        if isinstance(node, Rows):
            name = names.setdefault(node, f"rows-{len(names) + 1}")
            types = dict.fromkeys(node.frame.columns, "number")
            return {"name": name, **({"format": {"type": "csv", "parse": types}} if node.csv else {})}
        if isinstance(node, dict):
            return {key: named(each) for key, each in node.items()}
        return [named(each) for each in node] if isinstance(node, list) else node

    return named(spec), {name: rows for rows, name in names.items()}
