"""Which names are allowed, and the file names of models: derived from the model's name, and reversible."""

import re
from urllib.parse import quote, unquote

from touchstone.errors import TouchstoneError

# Parts of tables that belong to no model. A model's name may begin with "@" too: compare whole names.
PROBLEMS_PART = "@problems"
REFUSED_PART = "@refused"
PARTS_OF_NO_MODEL = (PROBLEMS_PART, REFUSED_PART)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
_MAX_MODEL_LENGTH = 200
# File systems take 255 bytes; the rest is for suffixes.
_MAX_KEY_LENGTH = 200
_KEPT = "+"


def check_name(name: str, what: str) -> str:
    """A name that may become a path or an SQL identifier as it is; anything else is refused.

    >>> check_name("before-4.1+tools", "pin")
    'before-4.1+tools'
    """
    if not _NAME.fullmatch(name):
        raise TouchstoneError(
            f"{what} name {name!r} is not allowed: use 1 to 100 letters, digits and . _ + - "
            "and start with a letter, digit or _"
        )
    return name


def check_model_name(name: str) -> str:
    """The name of a model, which may have slashes, colons and spaces; a name that cannot be shown is refused.

    >>> check_model_name("openai/gpt-4o"), check_model_name("Claude Opus 4.5")
    ('openai/gpt-4o', 'Claude Opus 4.5')
    """
    wrong = _wrong_model_name(name)
    if wrong:
        raise TouchstoneError(f"model name {name[:_MAX_MODEL_LENGTH]!r} is not allowed: {wrong}")
    return name


def _wrong_model_name(name: str) -> str | None:
    if not name or name != name.strip() or not name.isprintable():
        return "use printable characters, without spaces around them"
    if "..." in name:
        return "Dagster reserves '...' for ranges of models"
    if name in PARTS_OF_NO_MODEL:
        return "the name is used internally"
    if len(name) > _MAX_MODEL_LENGTH or len(file_key(name)) > _MAX_KEY_LENGTH:
        return "it is too long for a file name"
    return None


def file_key(name: str) -> str:
    """The name that stands for a model, or another part of a table, in file names.

    >>> file_key("gpt-4.1+tools"), file_key("openai/gpt-4o"), file_key(".hidden"), file_key("modèle 7b")
    ('gpt-4.1+tools', 'openai%2Fgpt-4o', '%2Ehidden', 'mod%C3%A8le%207b')
    """
    if name in PARTS_OF_NO_MODEL:
        return name
    # Not even a leading dot or dash: such a file would be hidden, or taken for an option.
    first = f"%{ord(name[0]):02X}" if name[:1] in (".", "-", "+", "~") else quote(name[:1], safe="")
    return first + quote(name[1:], safe=_KEPT).replace("~", "%7E")


def name_of_key(key: str) -> str:
    """The name that a file name stands for; the text itself if it is not such a name.

    >>> name_of_key("openai%2Fgpt-4o"), name_of_key("100%"), name_of_key("100%zz")
    ('openai/gpt-4o', '100%', '100%zz')
    """
    if "%" not in key:
        return key
    name = unquote(key, errors="replace")
    return name if file_key(name) == key else key
