"""Damage to good files of other tools: whatever it does, reading gives a table or one clear line."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import read_adapted
from touchstone.ingest.adapters.table import AdapterTable

# Decoded without trouble, and too deep to be encoded again.
DEEP = "@deep@"
DEEP_JSON = '{"a": ' * 800 + "1" + "}" * 800
ODD_VALUES: list[Any] = [
    DEEP,
    None,
    True,
    "",
    " ",
    "../../etc/passwd",
    "\ud800",
    -1,
    10**400,
    float("nan"),
    [],
    {},
    [[[]]],
    {"a": {"b": None}},
    "x" * 300,
]


@st.composite
def damaged_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """The bytes without a part, cut off, or with other bytes in between."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.one_of(st.just(len(good)), st.integers(start, min(len(good), start + 200))))
    return good[:start] + draw(st.binary(max_size=4)) + good[end:]


@st.composite
def changed_values(draw: st.DrawFn, good: Any) -> bytes:
    """The JSON document with some values replaced by odd ones, or left out."""
    document = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(1, 3))):
        parent = document
        while True:
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            child = parent[key]
            if isinstance(child, dict | list) and child and draw(st.booleans()):
                parent = child
                continue
            if draw(st.booleans()):
                parent[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
            else:
                del parent[key]
            break
    return json.dumps(document).replace(f'"{DEEP}"', DEEP_JSON).encode()


def read_or_refuse(path: Path) -> AdapterTable | None:
    """The table, or None if the file is refused as a whole, in one line; anything else is a defect."""
    try:
        table = read_adapted(path)
    except InputFileError as error:
        assert "\n" not in str(error)
        return None
    lines = table.frame["__line"].to_list()
    assert len(set(lines)) == len(lines)
    assert set(table.raw(set(lines))) <= set(lines)
    return table
