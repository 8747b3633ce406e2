"""Comments on attempts: one text each, in `comments.json` in the output folder, which no run touches.

Everyone who may open the dashboard may write them. They are text: pages escape them, as they do everything from others.
"""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from touchstone.errors import TouchstoneError
from touchstone.locations import address_of
from touchstone.regular_files import read_json
from touchstone.storage.files import refuse_links_out, replacing

FILE = "comments.json"
_LOCK = f".{FILE}.lock"
MOST_CHARACTERS = 10_000
_MOST_COMMENTS = 10_000
_PATIENCE_SECONDS = 10

AttemptKey = tuple[str, str, str, str]
_KEY = ("model", "tier", "oid", "iteration_id")


class Comment(NamedTuple):
    """What somebody wrote about an attempt, and the SHA-256 of the fix that it was about, if there was one."""

    text: str
    written_at: str
    fix_sha: str | None = None

    @property
    def mark(self) -> str:
        """Identifies what was written."""
        return hashlib.sha256(f"{self.written_at} {self.text}".encode("utf-8", "replace")).hexdigest()


def read_comments(folder: Path) -> dict[AttemptKey, Comment]:
    """All comments, by model, tier, problem and attempt."""
    refuse_links_out(folder, FILE, _LOCK)
    try:
        found = read_json(folder / FILE)
        return {_key_of(row): Comment(str(row["text"]), str(row["written_at"]), row["fix_sha"]) for row in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise TouchstoneError(
            f"{folder / FILE}: cannot be read ({type(error).__name__}); correct it or move it away"
        ) from None


def write_comment(folder: Path, key: AttemptKey, text: str, *, before: str, fix_sha: str | None) -> None:
    """Replace the comment on an attempt, whose mark must still be `before`; an empty text removes it."""
    import filelock

    if address_of(folder) is not None:
        raise TouchstoneError("comments can be written beside local results only, not in object storage")
    refuse_links_out(folder, _LOCK)
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MOST_CHARACTERS:
        raise TouchstoneError(f"a comment has at most {MOST_CHARACTERS:,} characters, this one {len(text):,}")
    try:
        with filelock.FileLock(folder / _LOCK, timeout=_PATIENCE_SECONDS):
            comments = read_comments(folder)
            if (comments[key].mark if key in comments else "") != before:
                raise TouchstoneError("somebody changed this comment meanwhile; go back, reload and write again")
            comments.pop(key, None)
            if text:
                comments[key] = Comment(text, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), fix_sha)
            if len(comments) > _MOST_COMMENTS:
                raise TouchstoneError(f"there are {_MOST_COMMENTS:,} comments already; remove some")
            _write(folder / FILE, comments)
    except (OSError, filelock.Timeout) as error:
        raise TouchstoneError(f"{folder / FILE}: cannot be written ({error})") from None


def _write(path: Path, comments: dict[AttemptKey, Comment]) -> None:
    rows = [dict(zip(_KEY, key, strict=True)) | comment._asdict() for key, comment in sorted(comments.items())]
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _key_of(row: Any) -> AttemptKey:
    model, tier, oid, iteration = (str(row[name]) for name in _KEY)
    return model, tier, oid, iteration
