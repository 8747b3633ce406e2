"""Whose reports a cache holds: every report is signed with a key that only this user has.

A results folder, and the cache in it, may come from somebody else, whose verdicts must not be believed. The key is in
`$TOUCHSTONE_CACHE_KEY`, for machines that share a cache, or else in the user's state folder, made on first use.
"""

import functools
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.locations import state_folder
from touchstone.progress import report_warning
from touchstone.regular_files import read_bytes

VARIABLE = "TOUCHSTONE_CACHE_KEY"
_FILE = "cache_key"
_MIN_LENGTH = 16
_MAX_BYTES = 4096


@dataclass(frozen=True)
class Owner:
    """Who signs reports; `name` tells owners apart and says nothing about the key."""

    name: str
    _key: bytes

    def sign(self, key: str, report: str) -> bytes:
        """The signature of a report under its cache key."""
        return hmac.digest(self._key, f"{key} {report}".encode("utf-8", "surrogatepass"), "sha256")

    def signed(self, key: str, report: str, signature: object) -> bool:
        """Whether this owner signed the report under this key."""
        return isinstance(signature, bytes) and hmac.compare_digest(signature, self.sign(key, report))


def owner() -> Owner:
    """The owner of the reports that this process makes."""
    return _owner_of(os.environ.get(VARIABLE) or _key_of_user())


@functools.lru_cache(maxsize=8)
def _owner_of(text: str) -> Owner:
    if len(text) < _MIN_LENGTH:
        raise TouchstoneError(f"{VARIABLE}: the key is too short; give it {_MIN_LENGTH} characters or more")
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return Owner(hmac.digest(key, b"name", "sha256").hex()[:16], key)


def _key_of_user() -> str:
    folder = state_folder()
    key = None if folder is None else _kept_key(folder / _FILE)
    if key is None:
        # Worker processes inherit it, so that this run finds its own reports.
        key = os.environ[VARIABLE] = secrets.token_hex(32)
        report_warning(
            f"there is no folder for the key of the validation cache, so later runs validate again; set {VARIABLE}"
        )
    return key


def _kept_key(file: Path) -> str | None:
    """The key in the file, which is made if it is not there; None if that is impossible."""
    scratch = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    with suppress(OSError, UnicodeDecodeError):
        if not file.exists():
            try:
                descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as made:
                    made.write(secrets.token_hex(32))
                with suppress(FileExistsError):  # another process was first
                    os.link(scratch, file)
            finally:
                scratch.unlink(missing_ok=True)
        if len(key := read_bytes(file, _MAX_BYTES).decode().strip()) >= _MIN_LENGTH:
            return key
    return None
