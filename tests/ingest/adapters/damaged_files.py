"""Damage to a good results file, for the property that a reader only ever refuses it in one line or returns a table."""

import contextlib
from pathlib import Path

from hypothesis import strategies as st

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import Adapter, AdapterTable, ReadOptions

_VALUES = [b"null", b"-1", b"1e999", b"NaN", b'""', b"[]", b"{}", b"true", b"9" * 400, b'"\\ud800"', b"\x00", b"\xff"]


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """The file cut short, without some bytes, with values of other types, or with two parts exchanged."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, min(len(good), start + 200)))
    kind = draw(st.sampled_from(["cut", "drop", "replace", "repeat"]))
    if kind == "cut":
        return good[:start]
    if kind == "drop":
        return good[:start] + good[end:]
    if kind == "repeat":
        return good[:end] + good[start:]
    # Whole values, so that the file stays readable for long enough to matter.
    marks = [place for place in range(start, len(good) - 1) if good[place : place + 1] in b':=,"'][:50] or [start]
    place = draw(st.sampled_from(marks)) + 1
    stop = next((each for each in range(place, len(good)) if good[each : each + 1] in b',}]"\n/>'), len(good))
    return good[:place] + draw(st.sampled_from(_VALUES)) + good[stop:]


def read_or_refused(adapter: Adapter, path: Path, options: ReadOptions | None = None) -> AdapterTable | None:
    """The table, or None if the file is refused in one line; any other error passes."""
    with contextlib.suppress(InputFileError):
        return adapter.read(path, options or ReadOptions())
    return None
