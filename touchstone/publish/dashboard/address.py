"""What an address of the dashboard means: the filters, what is open, how its table is sorted; and links to others."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from touchstone.publish.dashboard.selection import Filters

# Parameters that every link keeps.
_KEPT = ("run", "model", "tier", "suite", "slice", "value", "outcome", "failure", "mode")
# A problem may have no value in the column that it is sliced by.
_NO_VALUE = "null"

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Address:
    """A path of the dashboard and its parameters, in order; a parameter may be repeated."""

    path: str
    query: Query = ()

    def get(self, name: str) -> str:
        """The value of a parameter, with line breaks as they were typed; empty if it is not given."""
        return next((value.replace("\r\n", "\n") for key, value in self.query if key == name), "")

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a parameter."""
        return tuple(value for key, value in self.query if key == name)

    @property
    def filters(self) -> Filters:
        """The models, tiers, suites and slice that are chosen."""
        values = tuple(value_from(text) for text in self.all("value"))
        return Filters(self.all("model"), self.all("tier"), self.all("suite"), self.get("slice") or None, values)

    def link(self, path: str, **more: str) -> str:
        """Another page under the same filters."""
        return _joined(path, [*(pair for pair in self.query if pair[0] in _KEPT), *more.items()])

    def but(self, **changed: str | None) -> str:
        """This page with other parameters; None leaves one out."""
        query = [pair for pair in self.query if pair[0] not in changed]
        return _joined(self.path, [*query, *((name, text) for name, text in changed.items() if text is not None)])

    def others(self, names: Iterable[str]) -> Query:
        """The parameters that a form for these names must keep."""
        left_out = {*names, "page"}
        return tuple(pair for pair in self.query if pair[0] not in left_out)


def value_text(value: str | None) -> str:
    """A value of a slice as a parameter.

    >>> value_text("null"), value_text(None)
    ('=null', 'null')
    """
    return _NO_VALUE if value is None else f"={value}"


def value_from(text: str) -> str | None:
    """The reverse."""
    return None if text == _NO_VALUE else text.removeprefix("=")


def _joined(path: str, query: Iterable[tuple[str, str]]) -> str:
    text = urlencode([(name, value) for name, value in query if value])
    return f"{path}?{text}" if text else path
