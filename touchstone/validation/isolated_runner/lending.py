"""Data files that stay with the tests until the tests name one of them to the candidate."""

import base64
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from touchstone.validation.isolated_runner.rpc import Request, RpcConnection

_MAX_DEPTH = 4


class FileLender:
    """Sends withheld files of the tests; `paths` are relative to `root`."""

    def __init__(self, rpc: RpcConnection, root: str, paths: Sequence[str]) -> None:
        self._rpc, self._root = rpc, root
        self._here = os.getcwd()  # noqa: PTH109
        self._left = set(paths)

    def lend(self, *values: Any) -> None:
        """Send each withheld file that one of the values names, and the files in a folder that one names."""
        if self._left:
            for name in _texts(values, 0):
                path = os.path.relpath(os.path.join(self._here, name), self._root)  # noqa: PTH118
                self._send([one for one in self._left if one == path or one.startswith(f"{path}/")])

    def _send(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._left.discard(path)
            content = base64.b64encode(Path(self._root, path).read_bytes()).decode()
            self._rpc.request("file", path=path, content=content)


def _texts(value: Any, depth: int) -> Iterable[str]:
    if type(value) is str:
        return [value] if 0 < len(value) < os.pathconf("/", "PC_PATH_MAX") and "\0" not in value else []
    if depth > _MAX_DEPTH or not isinstance(value, list | tuple | set | frozenset | Mapping):
        return []
    inside = [*value, *value.values()] if isinstance(value, Mapping) else value
    return [text for one in inside for text in _texts(one, depth + 1)]


def receive(root: str, request: Request) -> None:
    """Write a lent file to the candidate's folder."""
    path = Path(root, request["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(request["content"]))
