"""Where the path of a JUnit file names the model, the tier and the attempt: the pattern of a user.

`{model}/{tier}/{attempt}.xml` is compared with the last three parts of a path. A field stands for one or more
characters within one part, an attempt for digits, and `*` for anything in a part, as in Surefire's `TEST-*.xml`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.names import name_of_key

_FIELDS = ("model", "tier", "attempt")
_FIELD = re.compile(r"\{([^{}]*)\}")
_FIRST_ATTEMPT = "1"


@dataclass(frozen=True)
class Place:
    """What is known about the attempt in a file."""

    model: str
    tier: str | None = None
    attempt: str = _FIRST_ATTEMPT
    notes: tuple[str, ...] = ()


def place_of(path: Path, pattern: str | None) -> Place:
    """The model, tier and attempt of a file; without a pattern, the model is the name of the file.

    >>> place_of(Path("runs/gpt-4o/hard/02.xml"), "{model}/{tier}/{attempt}.xml")
    Place(model='gpt-4o', tier='hard', attempt='2', notes=())
    """
    if pattern is None:
        note = f"the model is the file's name and the attempt is {_FIRST_ATTEMPT}; set junit_pattern to say otherwise"
        return Place(name_of_key(path.stem), notes=(note,))
    check_pattern(pattern)
    parts = path.absolute().parts[-len(pattern.split("/")) :]
    matches = [re.fullmatch(_expression(pattern, more), "/".join(parts), re.DOTALL) for more in ("", "?")]
    if matches[0] is None or matches[1] is None:
        raise InputFileError(f"{path}: its path does not end like junit_pattern '{pattern}'")
    if matches[0].groupdict() != matches[1].groupdict():
        raise InputFileError(f"{path}: junit_pattern '{pattern}' fits its path in more than one way")
    found = matches[0].groupdict()
    # Counted from 1 or from 0, with leading zeros or not: the number is the same.
    return Place(name_of_key(found["model"]), found.get("tier"), str(int(found.get("attempt") or _FIRST_ATTEMPT)))


def check_pattern(pattern: str) -> str:
    """Refuse a pattern that cannot name a model.

    >>> check_pattern("{modle}.xml")
    Traceback (most recent call last):
        ...
    touchstone.errors.TouchstoneError: junit_pattern '{modle}.xml': '{modle}' is not one of {model}, {tier}, {attempt}
    """
    fields = _FIELD.findall(pattern)
    known = ", ".join(f"{{{name}}}" for name in _FIELDS)
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown is not None:
        raise TouchstoneError(f"junit_pattern '{pattern}': '{{{unknown}}}' is not one of {known}")
    if "model" not in fields or len(set(fields)) < len(fields):
        raise TouchstoneError(f"junit_pattern '{pattern}': it must have {{model}}, and each of {known} at most once")
    return pattern


def _expression(pattern: str, more: str) -> str:
    """The pattern as a regular expression whose fields take as much as possible, or with `?` as little."""
    parts = _FIELD.split(pattern)
    fields = {"model": f"[^/]+{more}", "tier": f"[^/]+{more}", "attempt": f"[0-9]{{1,9}}{more}"}
    return "".join(
        f"(?P<{part}>{fields[part]})" if place % 2 else re.escape(part).replace(r"\*", "[^/]*")
        for place, part in enumerate(parts)
    )
