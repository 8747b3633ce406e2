"""Which names are allowed: those of models, pins and whatever else becomes a path or an SQL identifier."""

import re

from touchstone.errors import TouchstoneError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")


def check_name(name: str, what: str) -> str:
    """A name that may become a path, a partition key or an SQL identifier; anything else is refused.

    >>> check_name("gpt-4.1+tools", "model")
    'gpt-4.1+tools'
    """
    if not _NAME.fullmatch(name):
        raise TouchstoneError(
            f"{what} name {name!r} is not allowed: use 1 to 100 letters, digits and . _ + - "
            "and start with a letter, digit or _"
        )
    return name
