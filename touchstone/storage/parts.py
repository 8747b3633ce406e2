"""A part of a table, and the hash that says what it was made from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """A part of a table in the draft; `inputs` has the SHA-256 of the files that it was read from.

    `fingerprint` identifies its content: tables that read it are made again when it changes. For most parts it equals
    `made_from`, the hash of what the part was made from. A part that is not `settled` may differ when made again.
    `models` identifies each model's rows of a table that is made model by model.
    """

    path: Path
    rows: int
    fingerprint: str
    reused: bool
    inputs: Mapping[str, str] = field(default_factory=dict)
    made_from: str = ""
    settled: bool = True
    models: Mapping[str, str] = field(default_factory=dict)


def digest(value: object) -> str:
    """A stable hash of plain data.

    >>> digest({"b": 1, "a": [2]}) == digest({"a": [2], "b": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
