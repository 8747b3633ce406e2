"""Which paths a fix may write: inside the problem's tree, and where its other files leave room."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from touchstone.validation.files.locate_files import path_refusal
from touchstone.validation.files.working_copy import LEFT_OUT
from touchstone.validation.protocol import Tree

MAX_FILES = 1_000


def path_error(changes: Iterable[str]) -> str:
    """Why a path in a fix is refused; empty if all of them stay inside the tree."""
    paths = dict.fromkeys(changes)
    if len(paths) > MAX_FILES:
        return f"it changes {len(paths):,} paths; at most {MAX_FILES:,} are allowed"
    for path in paths:
        parts = path.split("/")
        if not path or "" in parts or "." in parts:
            return f"the path {path[:80]!r} is not a plain path"
        if reason := path_refusal("path", path):
            return reason
        if left_out := LEFT_OUT.intersection(parts):
            return f"the path {path[:80]!r} is in {min(left_out)}, which is not part of the problem"
    return ""


def layout_error(tree: Tree, changes: Mapping[str, bytes | None]) -> str:
    """Why the changed files cannot lie beside the others: one would be a file and a folder."""
    files = tree.with_changes(changes).files
    known = set(files)
    for path in (path for path, content in changes.items() if content is not None):
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        if (taken := next((parent for parent in parents if parent in known), None)) is not None:
            return f"{path} cannot be written: {taken} is a file"
        after = bisect_left(files, f"{path}/")
        if after < len(files) and files[after].startswith(f"{path}/"):
            return f"{path} cannot be written: it is a folder"
    return ""
