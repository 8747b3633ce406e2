"""Names for promptfoo's tests and columns, which have none: the same in every file, and never one for two things."""

import hashlib
import re
from collections.abc import Mapping

from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.lossless_json import Number, encode
from touchstone.ingest.adapters.table import Cells, RefusedRecordError
from touchstone.vocabulary import DEFAULT_TIER

_SPACE = re.compile(r"\s+")
_DIGITS = re.compile(r"[0-9]{1,9}")
_NAME_LENGTH = 80
_HASH_BYTES = 5


def problem_of(description: str | None, variables: object) -> str:
    """A test's name: its description, else its variables, and a hash of the variables.

    >>> problem_of("off by one", {"bug": "n+1"}), problem_of(None, {"bug": "n+1"}), problem_of("no variables", {})
    ('off by one #ea7aadba89', 'bug=n+1 #ea7aadba89', 'no variables')
    """
    given = variables if isinstance(variables, dict) else {}
    shown = description or ", ".join(f"{key}={text_of(value)}" for key, value in sorted(given.items()))
    text = _one_line(shown)
    if not text:
        raise RefusedRecordError("bad_id", "the test has no description and no variables")
    if text != shown:  # another test may look the same when shortened
        return f"{text} #{_digest([shown, given])}"
    return f"{text} #{_digest(given)}" if given else text


def assertions_of(test: Mapping[str, object]) -> str:
    """A hash of what a test asserts."""
    return _digest([test.get("assert"), test.get("threshold")])


def name_columns(columns: Mapping[str, Cells]) -> dict[str, str | None]:
    """The tier of each column: none for a single prompt, else the prompt's label, numbered where it is not unique.

    >>> cells = {"llm_name": "m", "prompt_id": "1", "prompt_label": "plain"}
    >>> name_columns({"0": cells, "1": cells, "2": cells | {"prompt_id": "2", "prompt_label": "long"}})
    {'0': 'plain', '1': 'plain #2', '2': 'long'}
    """
    several = len({cells["prompt_id"] or cells["prompt_label"] for cells in columns.values()}) > 1
    tiers: dict[str, str | None] = {}
    taken: set[tuple[str | None, str | None]] = set()
    for column in sorted(columns, key=lambda each: (whole_number(Number(each)) or 0, each)):
        cells = columns[column]
        label = _one_line(cells["prompt_label"] or cells["prompt_id"] or "") if several else ""
        tier, number = label or None, 1
        while (cells["llm_name"], tier) in taken:
            number += 1
            tier = f"{label or DEFAULT_TIER} #{number}"
        taken.add((cells["llm_name"], tier))
        tiers[column] = tier
    return tiers


def whole_number(value: object) -> int | None:
    """A small whole number; None for anything else."""
    fits = isinstance(value, Number) and _DIGITS.fullmatch(value)
    return int(str(value)) if fits else None


def _one_line(text: str) -> str:
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= _NAME_LENGTH else f"{line[: _NAME_LENGTH - 1]}…"


def _digest(value: object) -> str:
    try:
        text = encode(_ordered(value))
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_HASH_BYTES).hexdigest()


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value
