"""The scores of an Inspect log: their names, their values as numbers, and which of several decides.

A scorer gives every sample one value, or a dictionary or list of values, each of which is a score of its own: `tests`,
`review/style`, `review[0]`. Numbers follow Inspect's `value_to_float`: C is 1, P is 0.5, I and N are 0.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.lossless_json import Number

PASS_VALUE = 1.0

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# How many names a message lists.
_LISTED = 10


class ScoreName(NamedTuple):
    """A scorer, and the key of one of its values if it gives several."""

    scorer: str
    key: str | None = None

    def __str__(self) -> str:
        if self.key is None:
            return self.scorer
        return self.scorer + (self.key if self.key.startswith("[") else f"/{self.key}")


@lru_cache(maxsize=1000)
def plain_name(scorer: str) -> ScoreName:
    """The name of the only score of a scorer; every sample has the same few."""
    return ScoreName(scorer)


def values_of(scorer: str, value: dict[str, object] | list[object]) -> Iterator[tuple[ScoreName, object]]:
    """The scores in a value that is several.

    >>> [(str(name), value) for name, value in values_of("review", {"style": True, "length": None})]
    [('review/style', True), ('review/length', None)]
    """
    if isinstance(value, dict):
        yield from ((ScoreName(scorer, str(key)), each) for key, each in value.items())
    else:
        yield from ((ScoreName(scorer, f"[{place}]"), each) for place, each in enumerate(value))


def is_unscored(value: object) -> bool:
    """Whether a value is NaN, by which a scorer says that it could not decide."""
    return isinstance(value, Number) and math.isnan(float(value))


def known_number(value: object) -> float | None:
    """A value as Inspect's metrics count it; None if it is a word or structure that they cannot convert.

    >>> known_number("C"), known_number("yes"), known_number(True), known_number("0.5"), known_number("left")
    (1.0, 1.0, 1.0, 0.5, None)
    """
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    if isinstance(value, Number):
        return float(value)
    number = _LETTERS.get(value, _WORDS.get(value.lower()))
    return _finite(value) if number is None else number


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def to_float(value: object) -> float:
    """A value as Inspect's metrics count it: what they cannot convert is 0."""
    return known_number(value) or 0.0


def reported_name(entry: Mapping[str, object], available: Collection[ScoreName]) -> ScoreName:
    """The score that an entry of the log's results is about; for a key of a dictionary, the entry has that name."""
    name = str(entry.get("name"))
    scorer = str(entry.get("scorer") or name)
    own = ScoreName(scorer)
    return (
        own
        if name == scorer and (own in available or ScoreName(scorer, name) not in available)
        else ScoreName(scorer, name)
    )


def choose_score(
    where: str, available: Sequence[ScoreName], reported: Sequence[ScoreName], wanted: str | None
) -> ScoreName | None:
    """The score that decides: the wanted one, else the first that the log reports on, else the first of all.

    A reported score that gives several values is returned as such, although no value has its name: none of them is
    the one to be preferred.
    """
    if wanted is not None:
        return _find(where, available, wanted)
    for name in reported:
        parts = [each for each in available if each.scorer == name.scorer and name.key in (None, each.key)]
        if parts:
            return parts[0] if len(parts) == 1 else name
    return available[0] if available else None


def _find(where: str, available: Sequence[ScoreName], wanted: str) -> ScoreName:
    exact = [name for name in available if str(name) == wanted]
    matching = exact or [name for name in available if wanted in (name.key, name.scorer)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InputFileError(f"{where}: the score {wanted!r} is ambiguous; choose one of {listed(matching)}")
    raise InputFileError(f"{where}: no score {wanted!r}; it has {listed(available) or 'none'}")


def listed(names: Sequence[ScoreName]) -> str:
    """The first of these names, for a message."""
    return ", ".join(map(str, names[:_LISTED])) + (", …" if len(names) > _LISTED else "")
