"""Reading a configuration file, JSON or TOML, into plain values, its paths, and what its sections share."""

import errno
import json
import os
import stat
import tomllib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from touchstone.errors import TouchstoneError
from touchstone.locations import input_location, is_mirror, output_location, refuse_address
from touchstone.regular_files import read_bytes
from touchstone.text import near

_MAX_BYTES = 10_000_000
_RESULTS, _OUTPUT, _PROBLEMS = "results_dir", "output_dir", "problems_csv"
_FOLDER = "evaluation"


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
            raise ValueError(f"unknown key '{key}' ({near(str(key), known, 'known keys')})")
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


# The configuration of TF_repair_evaluator as ours. It is known by its key `results_dir`, which ours never has. Its
# paths are relative to the folder in which its scripts are started: the one above `evaluation`, where the file is. Its
# `output_dir` takes the outcomes and its `results_dir` the figures; here both are in one folder.


def translate_settings(path: Path, settings: dict[str, Any]) -> tuple[dict[str, Any], Path, tuple[str, ...]]:
    """The settings under our names, the folder that their paths are relative to, and what to tell the user."""
    base = path.parent.absolute()
    if not isinstance(settings.get(_RESULTS), str):
        return settings, base, ()
    base = next((place.parent for place in (base, base.parent) if place.name == _FOLDER), base)
    results, outcomes = settings[_RESULTS], settings.get(_OUTPUT)
    translated = {key: value for key, value in settings.items() if key != _RESULTS} | {_OUTPUT: results}
    known = [Path("problems", "problems.csv"), *([Path(outcomes, "problems.csv")] if isinstance(outcomes, str) else [])]
    problems = next((place for place in known if (base / place).is_file()), None)
    # Synthetic fixes bring their own problems.
    if problems and _PROBLEMS not in settings and not settings.get("generate_synthetic_data"):
        translated[_PROBLEMS] = str(problems)
    unused = f"; nothing is written to {outcomes}" if outcomes not in (None, results) else ""
    return translated, base, (f"{path}: results_dir ({results}) is taken as output_dir{unused}",)


def original_config(folder: Path, name: str) -> Path | None:
    """The configuration that TF_repair_evaluator keeps in its folder `evaluation`, if this is its folder."""
    place = folder / _FOLDER / name
    try:
        return place if place.is_file() and _RESULTS in read_config_file(place) else None
    except TouchstoneError:
        return None


# The paths of a configuration


def local_places(data: dict[str, Any]) -> dict[str, str]:
    """The keys that may be addresses in object storage and are, with the local paths that stand for them."""
    places = {"fixes_dir": input_location, "problems_csv": input_location, "output_dir": output_location}
    given = {key: data[key] for key in places if isinstance(data.get(key), str)}
    found = {key: places[key](text) for key, text in given.items()}
    return {key: str(path.absolute()) for key, path in found.items() if path != Path(given[key])}


def refuse_addresses(section: BaseModel, prefix: str = "") -> None:
    """Raise an error if a path that must be local is an address in object storage."""
    for name, value in section:
        if isinstance(value, BaseModel):
            refuse_addresses(value, f"{prefix}{name}.")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Path):
                refuse_address(each, f"{prefix}{name}")


SectionT = TypeVar("SectionT", bound=BaseModel)


def anchored(section: SectionT, base: Path) -> SectionT:
    """The section with absolute paths: relative ones are resolved against `base`, the configuration's folder."""

    def absolute(value: Any) -> Any:
        if isinstance(value, Path):
            return (base / expanded(value)).absolute()
        if isinstance(value, list):
            return [absolute(each) for each in value]
        return anchored(value, base) if isinstance(value, BaseModel) else value

    return section.model_copy(update={name: absolute(value) for name, value in section})


def expanded(path: Path) -> Path:
    """The path with a leading `~` or `~user` replaced by the home folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise TouchstoneError(f"'{path}': there is no such home folder") from None


def require_local(what: str, path: Path) -> None:
    """Raise an error if a path that is written to is that of mirrored inputs."""
    if is_mirror(path):
        raise TouchstoneError(f"{what}: {path} is a mirror of object storage, which nothing may write to")


# Folders of the system: the first as they are, the others with all that is in them.
_SYSTEM = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/usr", "/usr/local", "/var")
_SYSTEM_TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys"),
    *("/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share"),
)
_SHARED_MEMORY = Path("/dev/shm")


def refuse_system_folder(key: str, path: Path) -> None:
    """Raise an error if a folder belongs to the system, or is the home folder itself: a run would litter it.

    Links and `..` are followed first.

    >>> refuse_system_folder("output_dir", Path("/tmp/../etc/results"))
    Traceback (most recent call last):
        ...
    touchstone.errors.TouchstoneError: output_dir: /etc/results is a folder of the system; choose a folder of your own
    """
    place = resolved(key, path)
    in_tree = any(place.is_relative_to(each) for each in _SYSTEM_TREES) and _SHARED_MEMORY not in place.parents
    if in_tree or str(place) in _SYSTEM:
        raise TouchstoneError(f"{key}: {place} is a folder of the system; choose a folder of your own")
    with suppress(RuntimeError):  # there is no home
        if place == Path.home().resolve():
            raise TouchstoneError(f"{key}: {place} is your home folder; choose a folder in it")


def require_folder(key: str, path: Path) -> None:
    """Raise an error if the folder cannot be created because it, or one of its parents, is a file."""
    for place in (path, *path.parents):
        if place.is_file():
            raise TouchstoneError(f"{key}: {place} is a file, not a folder")


def resolved(key: str, path: Path) -> Path:
    """The path without links and `..`; one line if its links lead in a circle."""
    real = Path(os.path.realpath(path))
    try:
        circular = stat.S_ISLNK(real.lstat().st_mode)
    except OSError as error:
        circular = error.errno == errno.ELOOP
    if circular:
        raise TouchstoneError(f"{key}: {path} is a link that leads to itself; correct it")
    return real
