"""The user's own folders, for what must not lie among results, which may come from somebody else.

Caches can be made again; state cannot.
"""

import os
import stat
from pathlib import Path


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/touchstone`, made if need be; None if it cannot be made or others can write to it."""
    return _own_folder("XDG_CACHE_HOME", "~/.cache")


def state_folder() -> Path | None:
    """`$XDG_STATE_HOME/touchstone`, made if need be; None if it cannot be made or others can write to it."""
    return _own_folder("XDG_STATE_HOME", "~/.local/state")


def _own_folder(variable: str, default: str) -> Path | None:
    try:
        base = Path(os.environ.get(variable) or Path(default).expanduser())
        folder = base / "touchstone"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError):  # the latter without a home
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if own and base.is_absolute() else None
