"""Shared by the scripts: the name of a report, and text for systems that limit its length or read commands in it."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from io import TextIOWrapper

DEFAULT_NAME = "touchstone"


class UsageError(Exception):
    """An input that cannot be used; the message is one line for the user."""


def setting(environment: Mapping[str, str], name: str, default: str = "") -> str:
    """The value of an input; one that is empty or only blanks is not given."""
    value = environment.get(f"TOUCHSTONE_CI_{name}", "")
    return value if value.strip() else default


def report_name(environment: Mapping[str, str]) -> str:
    """The name of the report, in characters that an artifact and an HTML comment may have. Names stay distinct."""
    name = setting(environment, "NAME", DEFAULT_NAME)
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-")[:64]
    if plain == name:
        return name
    return f"{plain or DEFAULT_NAME}-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


def announce(level: str, message: str) -> None:
    """Print a warning or error: an annotation on GitHub, elsewhere a line on standard error."""
    line = "".join(each if each.isprintable() else "?" for each in " ".join(message.split()))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(f"::{level}::{line.replace('%', '%25')}", flush=True)
    else:
        print(f"{level}: {line}", file=sys.stderr, flush=True)


def shortened(text: str, limit: int, remark: str) -> str:
    """The text in at most `limit` bytes: whole lines, then the remark."""
    if len(text.encode()) <= limit:
        return text
    end = f"\n</details>\n\n{remark}\n"
    kept = text.encode()[: limit - len(end.encode())].decode(errors="ignore").rpartition("\n")[0]
    still_open = kept.count("<details>") > kept.count("</details>")
    return kept + (end if still_open else f"\n\n{remark}\n")


def use_utf8() -> None:
    """Print any text, whatever the locale of the job is."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
