"""The stamps of the parts of tables: small JSON files that say what each part was made from.

A run looks at every stamp many times, so one is read again only if its file is another one or was changed since.
"""

from pathlib import Path
from typing import Any

from touchstone.regular_files import read_json

_KINDS = {"rows": int, "fingerprint": str, "made_from": str, "inputs": dict, "models": dict, "settled": bool}


class Stamps:
    """Stamps by path, as last read."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[tuple[int, ...], dict[str, Any] | None]] = {}

    def of(self, path: Path) -> dict[str, Any] | None:
        """What the stamp says; None if it is missing or damaged, so that its part is made again."""
        try:
            status = path.stat()
        except OSError:
            return None
        # Taken before reading: a stamp that changes in between is read again next time.
        version = (status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != version:
            known = self._read[path] = (version, _read_stamp(path))
        return known[1]


def _read_stamp(path: Path) -> dict[str, Any] | None:
    try:
        made = read_json(path)
    except (OSError, ValueError):
        return None
    if not isinstance(made, dict):
        return None
    made = {"inputs": {}, "models": {}, "made_from": made.get("fingerprint"), "settled": True, **made}
    return made if all(isinstance(made.get(name), kind) for name, kind in _KINDS.items()) else None
