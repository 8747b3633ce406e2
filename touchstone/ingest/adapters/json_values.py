"""JSON of results files as text cells, under the column names of the native fixes CSV.

Numbers stay as they were written; parsing cells belongs in `touchstone.ingest.cells`.
"""

from collections.abc import Collection, Mapping

from touchstone.ingest.adapters.lossless_json import Number, encode
from touchstone.ingest.adapters.table import Cells, RefusedRecordError, carried_name, encodable


def unmapped_cells(
    record: Mapping[str, object],
    mapped: Collection[str],
    sections: Mapping[str, Collection[str]],
    taken: Collection[str],
) -> Cells:
    """Everything without a column of its own; values of the nested `sections` are named `<section>_<key>`.

    `sections` lists the mapped keys of each nested object.
    """
    cells: Cells = {}
    for name, known in sections.items():
        section = section_of(record, name) or {}
        nested = {f"{name}_{key}": value for key, value in section.items() if key not in known}
        cells |= _carried_cells(nested, (), (*taken, *cells))
    return cells | _carried_cells(record, (*mapped, *sections), (*taken, *cells))


def _carried_cells(record: Mapping[str, object], mapped: Collection[str], taken: Collection[str]) -> Cells:
    """The values of a record that the adapter does not map; nested ones as JSON."""
    return {carried_name(encodable(key), taken): text_of(value) for key, value in record.items() if key not in mapped}


def text_of(value: object) -> str | None:
    """A JSON value as the text of a cell; null and empty values are null, as in a CSV."""
    if value is None:
        return None
    if isinstance(value, str):
        # Nearly every cell takes this way: one call less.
        return (str(value) if value.isascii() else encodable(value)) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in ([], {}):
        return None
    try:
        return encodable(encode(value))
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None


def shown_json(value: object) -> str:
    """The JSON text of any value, to be shown to people."""
    try:
        return encodable(encode(value))
    except RecursionError:
        return "(nested too deeply to be shown)"


def identifier_of(record: Mapping[str, object], name: str) -> str:
    """The text of a required key."""
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise RefusedRecordError("bad_id", f"the {name} is {_described(value)} where text belongs")
    text = text_of(value)
    if text is None or not text.strip():
        raise RefusedRecordError("bad_id", f"the {name} is missing")
    return text


def object_of(value: object, name: str) -> dict[str, object]:
    """A value that must be an object."""
    if not isinstance(value, dict):
        raise RefusedRecordError("ragged", f"the {name} is {_described(value)} where an object belongs")
    return value


def section_of(record: Mapping[str, object], name: str) -> dict[str, object] | None:
    """A nested object of a record; None if it is missing or null."""
    value = record.get(name)
    return None if value is None else object_of(value, name)


def _described(value: object) -> str:
    if isinstance(value, Number):
        return "a number"
    words = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return words.get(type(value), "null")
