"""Reading a configuration file, JSON or TOML, into plain values, and what its sections share."""

import difflib
import json
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from touchstone.errors import TouchstoneError
from touchstone.regular_files import read_bytes

_MAX_BYTES = 10_000_000


class Section(BaseModel):
    """A part of a configuration: it has no keys but its own, and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_config_file(path: Path, what: str = "config") -> dict[str, Any]:
    """The keys and values of a configuration file, or of `what` else; an error of one line if it is not one."""
    try:
        text = read_bytes(path, _MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise TouchstoneError(f"{path}: no such {what} file") from None
    except OSError as error:
        raise TouchstoneError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise TouchstoneError(f"{path}: cannot be read ({error})") from None
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else _parse_json(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise TouchstoneError(f"{path}: not valid JSON ({where}: {error.msg})") from None
    except tomllib.TOMLDecodeError as error:
        raise TouchstoneError(f"{path}: not valid TOML ({error})") from None
    except ValueError as error:
        raise TouchstoneError(f"{path}: {error}") from None
    except RecursionError:
        raise TouchstoneError(f"{path}: nested too deeply") from None
    if not isinstance(data, dict):
        raise TouchstoneError(f"{path}: the {what} must be an object of keys and values")
    for value in _texts(data):
        if "\0" in value or not _is_unicode(value):
            raise TouchstoneError(f"{path}: {value[:80]!r} has a character that no name or path may have")
    return data


def refuse_unknown_keys(data: Any, known: Collection[str]) -> Any:
    """Refuse a key that a section does not have, with the one that was probably meant."""
    for key in data if isinstance(data, dict) else ():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
            raise ValueError(f"unknown key '{key}' ({hint})")
    return data


def first_problem(error: ValidationError) -> str:
    """The first error of a validation in one line, with its place."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"unknown key '{where}'"
    if problem["type"] == "missing":
        return f"the key '{where}' is missing"
    if not where:
        return message
    given = problem["input"]
    shown = f" (got {repr(given)[:80]})" if isinstance(given, str | int | float | bool | None) else ""
    return f"{where}: {message}{shown}"


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_int=_whole_number, parse_constant=_refuse)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key '{key[:80]}' appears twice; only one of them could count")
        found[key] = value
    return found


def _whole_number(digits: str) -> int:
    # Python refuses to convert thousands of digits; no setting needs more than a few.
    if len(digits) > 40:
        raise ValueError(f"the number {digits[:10]}… has {len(digits):,} digits")
    return int(digits)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number that JSON has")


def _texts(value: Any) -> Iterator[str]:
    """Every key and text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
